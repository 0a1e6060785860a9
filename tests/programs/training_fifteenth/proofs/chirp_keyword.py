import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("chirp_keyword", capture=("main",)).locals["main"]
b = run("chirp_keyword", ("v.detach().cpu()", "v.detach().cpu().clone()"), capture=("main",)).locals["main"]
for n, r in (("as is", a), ("repaired", b)):
    print(n, r["keeper"].best_epoch, r["keeper"].best_loss, r["val_loss"], r["test_loss"], r["test_acc"])
assert a["keeper"].best_loss == b["keeper"].best_loss
assert a["val_loss"] > 1.5 * a["keeper"].best_loss
assert abs(b["val_loss"] - b["keeper"].best_loss) < 1e-5
params = dict(a["model"].named_parameters())
assert all(params[k].data_ptr() == a["keeper"].weights[k].data_ptr() for k in params)
assert a["test_loss"] > 1.5 * b["test_loss"]
