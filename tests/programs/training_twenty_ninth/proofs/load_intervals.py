import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("        shortfall = F.relu((1.0 - self.alpha) - coverage)",
       "        soft = torch.sigmoid(20.0 * (y - lower)) * torch.sigmoid(20.0 * (upper - y))\n"
       "        shortfall = F.relu((1.0 - self.alpha) - soft.mean())")
a = run("load_intervals", as_main=False)
torch.manual_seed(0)
y = torch.randn(64, 6)


def grads(program, weight):
    lower = torch.full((64, 6), -0.3, requires_grad=True)
    upper = torch.full((64, 6), 0.3, requires_grad=True)
    value, coverage = program["IntervalLoss"](weight=weight)(lower, upper, y)
    assert coverage < 0.5  # the constraint is violated, the penalty is active
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, (lower, upper))]), value.item()


g0, v0 = grads(a, 0.0)
g1, v1 = grads(a, 20.0)
assert v1 > v0 + 1 and torch.equal(g0, g1)  # the penalty counts in the value and not in the gradient
f = run("load_intervals", FIX, as_main=False)
h0, _ = grads(f, 0.0)
h1, _ = grads(f, 20.0)
assert torch.equal(h0, g0) and rel(h1, h0) > 0.5
a, b = run("load_intervals"), run("load_intervals", FIX)
z = run("load_intervals", ("weight=20.0", "weight=0.0"))
print("coverage: as written", a["covered"], "repaired", b["covered"])
assert torch.equal(flat(a["model"])[:1000], flat(z["model"])[:1000]) or rel(flat(a["model"]), flat(z["model"])) < 1e-4
assert a["covered"] < 0.1 and b["covered"] > 0.75
