import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("fjord_depth")
good = run("fjord_depth", ("image *= gain", "image = image * gain"))


def drift(r):
    """The stored training images against a fresh rendering of the same scenes."""
    cfg = r["cfg"]
    clean, _ = r["render"](cfg.train, cfg.size, torch.Generator().manual_seed(cfg.seed))
    return rel(r["train_set"].images, clean)


print("drift", drift(bad), drift(good))
assert drift(good) == 0.0 and drift(bad) > 0.5
a, b = (r["abs_rel"](r["model"], r["val_loader"]) for r in (bad, good))
print("abs-rel", a, b)
assert a > 1.1 * b
