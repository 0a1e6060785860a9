import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

START = ("model = SharedNet()\n", "model = SharedNet()\nfirst = {k: v.clone() for k, v in model.state_dict().items()}\n")
FIX = ("    report = {}\n", "    report = {}\n    optimizer.zero_grad()\n")
a = run("street_tasks", START)
b = run("street_tasks", START, ("        optimizer.zero_grad()\n", ""), FIX)
for r, stuck in ((a, True), (b, False)):
    for k, v in r["model"].state_dict().items():
        dead = k.startswith(("heads.depth", "heads.kind")) and stuck
        assert torch.equal(v, r["first"][k]) == dead, k
kind = lambda r: float(r.output.split()[-3])
assert kind(b) < 0.7 * kind(a), (kind(a), kind(b))
print("proved: street_tasks")
