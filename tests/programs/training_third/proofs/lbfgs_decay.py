import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, rel

fix = ("            loss.backward()\n            return", "            self.opt.zero_grad()\n            loss.backward()\n            return")
two = ("max_iter=4", "max_iter=3"), ("rounds=20", "rounds=1")
a, b = run("lbfgs_decay"), run("lbfgs_decay", fix)
assert a["fitter"].trace[-1] > 2 * b["fitter"].trace[-1], (a["fitter"].trace, b["fitter"].trace)
count = ("            self.calls += 1\n", "            self.calls += 1\n            self.before = [None if p.grad is None else p.grad.clone() for p in self.model.parameters()]\n")
m = run("lbfgs_decay", count, *two)["fitter"]
assert m.calls >= 2 and any(g is not None and g.abs().sum() > 0 for g in m.before)
print("proved: lbfgs_decay")
