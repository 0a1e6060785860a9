import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("dist.rsample()", "dist.sample()")
bad = run("kite_hover")
good = run("kite_hover", FIX)
torch.manual_seed(21)
start = bad["Actor"]()                                   # same seed, first module built: the initial weights
moved = {}
for name, r in (("bad", bad), ("good", good)):
    moved[name] = max((a - b).abs().max().item() for a, b in zip(r["actor"].mean.parameters(), start.mean.parameters()))
last = {n: sum(r["history"][-10:]) / 10 for n, r in (("bad", bad), ("good", good))}
print("mean network moved", moved, "return", last)
assert moved["good"] > 0.1 and moved["bad"] < 1e-5       # the policy mean is never trained
assert last["good"] > last["bad"] / 2                    # returns are negative: less than half of the cost
