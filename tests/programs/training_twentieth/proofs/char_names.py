import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
import torch.nn.functional as F
from proofkit import run

bad = run("char_names")
good = run("char_names", ("logits.reshape(batch, vocab, time)", "logits.transpose(1, 2)"))


def true_loss(r):
    torch.manual_seed(0)
    with torch.no_grad():
        x, y = r["get_batch"](r["val_data"])
        z = r["model"].eval()(x)[0]
        return F.cross_entropy(z.flatten(0, 1), y.flatten()).item(), r["sequence_loss"](z, y).item()


print("program:", true_loss(bad), "repaired:", true_loss(good), "(plain loss, its own)")
t, own = true_loss(bad)
g, gown = true_loss(good)
assert abs(t - own) > 0.1 and abs(g - gown) < 1e-5
assert g < t - 0.8
