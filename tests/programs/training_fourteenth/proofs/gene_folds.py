import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, flat

LOG = ("    train_rows, valid_rows =", "    STARTS.append(torch.cat([p.detach().flatten().clone() for p in model.parameters()]))\n    train_rows, valid_rows =")
FIX = ("initial = model.state_dict()", "initial = {k: v.clone() for k, v in model.state_dict().items()}")
s_bad, s_good = [], []
bad = run("gene_folds", LOG, inject={"STARTS": s_bad})
good = run("gene_folds", LOG, FIX, inject={"STARTS": s_good})
print("distance of each fold's start from fold 0's:", [rel(s, s_bad[0]) for s in s_bad], [rel(s, s_good[0]) for s in s_good])
print("cross-validated", bad["cv_acc"], "->", good["cv_acc"], " independent", bad["ext_acc"], good["ext_acc"])
w = bad["model"].layers[0].weight
assert bad["initial"]["layers.0.weight"].data_ptr() == w.data_ptr()
assert all(rel(s, s_bad[0]) > 0.3 for s in s_bad[1:]) and all(rel(s, s_good[0]) == 0 for s in s_good)
assert bad["cv_acc"] - bad["ext_acc"] > 0.1 and abs(good["cv_acc"] - good["ext_acc"]) < 0.08
assert bad["cv_acc"] - good["cv_acc"] > 0.1
