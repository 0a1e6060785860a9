import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch


def leak(r):
    """Does an early prediction depend on later notes?"""
    seq = r["test"][:, :-1].clone()
    other = seq.clone()
    other[:, 20:] = (other[:, 20:] + 5) % 16
    with torch.no_grad():
        return (r["model"](seq)[:, :20] - r["model"](other)[:, :20]).abs().max().item()


a = run("melody_recall", capture=("forward",))
old = "F.normalize(q), F.normalize(k)"
b = run("melody_recall", (old, "F.normalize(q, dim=-1), F.normalize(k, dim=-1)"))
print("leak", leak(a), leak(b), "loss", a["test_loss"], b["test_loss"], "late", a["late"], b["late"])
assert leak(a) > 0.05 and leak(b) < 1e-4
assert abs(b["test_loss"] - a["test_loss"]) > 0.02
