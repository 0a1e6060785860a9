import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import rel, run

old = "lu_solve(lu, pivots, grad_conc.unsqueeze(-1))"
new = "lu_solve(lu, pivots, grad_conc.unsqueeze(-1), adjoint=True)"
bad = run("plume_source", capture=("main",))
good = run("plume_source", (old, new), capture=("main",))
for r in (bad, good):
    a = r["build_operator"](torch.tensor([0.5]))
    q = torch.rand(1, r["CELLS"], requires_grad=True)
    w = torch.rand(1, r["CELLS"])
    (got,) = torch.autograd.grad((w * r["StationarySolve"].apply(a, q)).sum(), q)
    (want,) = torch.autograd.grad((w * torch.linalg.solve(a, q)).sum(), q)
    r["gap"] = rel(got, want)
    m = r.locals["main"]
    print("gradient gap", r["gap"], "misfit", m["misfit"], "error", m["error"])
assert bad["gap"] > 0.3 and good["gap"] < 1e-9
assert bad.locals["main"]["misfit"] > 3 * good.locals["main"]["misfit"]
assert bad.locals["main"]["error"] > 1.3 * good.locals["main"]["error"]
