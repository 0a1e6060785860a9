import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, rel

old = "torch.linalg.lu_solve(lu, pivots, grad_x)"
wrong = run("plume_sources")
fixed = run("plume_sources", (old, "torch.linalg.lu_solve(lu, pivots, grad_x, adjoint=True)"))
print("misfit:", wrong["loss"].item(), "->", fixed["loss"].item(), " held out:", wrong["misfit"], "->", fixed["misfit"],
      " emissions:", wrong["error"].item(), "->", fixed["error"].item())

a = wrong["operator"](torch.tensor(2.5), torch.tensor(0.02)).requires_grad_()
b = torch.rand(64, 3, requires_grad=True)
w = torch.randn(64, 3)
reference = torch.autograd.grad((torch.linalg.solve(a, b) * w).sum(), (a, b))
errors = []
for r in (wrong, fixed):
    got = torch.autograd.grad((r["SteadyState"].apply(a, b) * w).sum(), (a, b))
    errors.append([rel(g, t) for g, t in zip(got, reference)])
print("relative error of the gradients (matrix, rhs):", errors)
assert min(errors[0]) > 0.3 and max(errors[1]) < 1e-8
assert wrong["misfit"] > 2 * fixed["misfit"]
