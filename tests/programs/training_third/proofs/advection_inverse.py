import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat, rel
N = "advection_inverse"
heavy = ("physics_weight=0.5", "physics_weight=20.0")
fix = ("retain_graph=True", "create_graph=True")
few = ("iterations=150", "iterations=40")
a, b = run(N, few)["problem"], run(N, few, heavy)["problem"]
assert torch.equal(flat(a.field), flat(b.field))
c, d = run(N, few, fix)["problem"], run(N, few, fix, heavy)["problem"]
assert rel(flat(c.field), flat(d.field)) > 1e-2 and rel(flat(a.field), flat(c.field)) > 1e-3
_, physics = a.losses()
g = torch.autograd.grad(physics, list(a.field.parameters()), allow_unused=True)
assert all(x is None for x in g)
print(f"proved: {N}")
