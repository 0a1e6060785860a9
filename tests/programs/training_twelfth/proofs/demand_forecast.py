import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel
import torch

fix = ("self.saved[n] = p.data", "self.saved[n] = p.data.clone()")
wrong, right = run("demand_forecast"), run("demand_forecast", fix)
a, b = wrong["trainer"].history[-1], right["trainer"].history[-1]
out = []
for r in (wrong, right):
    t = r["trainer"]
    with torch.no_grad():
        for p in t.model.parameters():
            p.add_(0.1)
    before = flat(t.model).clone()
    t.validate()
    out.append(rel(flat(t.model), before))
print("final MAE wrong", a, "repaired", b, "change of the weights by a validation", out)
assert out[0] > 0.1 and out[1] == 0.0
assert a > 1.2 * b
