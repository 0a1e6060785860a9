import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

r = run("review_gru", capture=("main", "forward"))
fwd = r.locals["forward"]  # last batch of the test set
zero = (fwd["summary"] == 0).all(1)
short = fwd["lengths"] < fwd["lengths"].max()
print("summary vectors that are all zero:", zero.sum().item(), "of", len(zero))
assert torch.equal(zero, short) and zero.float().mean() > 0.7
fixed = run("review_gru", ("states[:, -1]", "states[torch.arange(len(lengths)), lengths - 1]"), capture=("main",))
a, b = r.locals["main"]["test_acc"], fixed.locals["main"]["test_acc"]
print("test accuracy as written", a, "with the state at each length", b)
assert b > a + 0.2
