import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)

FIX = ("log_risk = log_risk[order]\n", "log_risk, event = log_risk[order], event[order]\n")
bad = run("cedar_tenure", capture=("main",))
good = run("cedar_tenure", FIX, capture=("main",))

# against the definition of the partial likelihood, written with pairs
torch.manual_seed(0)
r = torch.randn(60, dtype=torch.double, requires_grad=True)
t, e = torch.rand(60, dtype=torch.double), (torch.rand(60) < 0.6).double()
at_risk = (t[None, :] >= t[:, None])
plain = -((r - torch.where(at_risk, r[None, :], -float("inf")).logsumexp(1)) * e).sum() / e.sum()
g0, = torch.autograd.grad(plain, r)
gb, = torch.autograd.grad(bad["CoxLoss"]()(r, t, e), r)
gg, = torch.autograd.grad(good["CoxLoss"]()(r, t, e), r)
print("gradient error", rel(gb, g0), rel(gg, g0))
assert rel(gg, g0) < 1e-9 and rel(gb, g0) > 0.3
cb, cg = bad.locals["main"]["c_index"], good.locals["main"]["c_index"]
print("c-index", cb, cg)
assert cg > cb + 0.05
