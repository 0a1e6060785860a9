import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

old = "            avg.mul_(d).add_(p, alpha=1 - d)\n"
a = run("bearing_monitor")
b = run("bearing_monitor", (old, old + "        for avg, b in zip(self.shadow.buffers(), model.buffers()):\n            avg.copy_(b)\n"))
print("shipped, online:", a["shipped"], a["online"], "| repaired:", b["shipped"], b["online"])
norms = [m.norm for m in a["ema"].shadow.body]
assert all(torch.equal(n.running_mean, torch.zeros_like(n.running_mean)) for n in norms)
assert all(torch.equal(n.running_var, torch.ones_like(n.running_var)) for n in norms)
assert all(n.norm.running_mean.abs().max() > 0.1 for n in a["model"].body)
assert b["online"] == a["online"]
assert a["shipped"] < b["shipped"] - 0.1
