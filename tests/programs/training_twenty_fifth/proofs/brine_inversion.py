import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("thomas(lower.numpy(), diag.numpy(), upper.numpy(), grad", "thomas(upper.numpy(), diag.numpy(), lower.numpy(), grad")


def against_dense(r):
    torch.manual_seed(1)
    bands = [torch.rand(7, dtype=torch.float64), 3 + torch.rand(8, dtype=torch.float64), torch.rand(7, dtype=torch.float64),
             torch.randn(3, 8, dtype=torch.float64)]
    a = [b.clone().requires_grad_() for b in bands]
    b = [b.clone().requires_grad_() for b in bands]
    w = torch.randn(3, 8, dtype=torch.float64)
    x = r["TridiagSolve"].apply(*a)
    A = torch.diag(b[1]) + torch.diag(b[0], -1) + torch.diag(b[2], 1)
    y = torch.linalg.solve(A, b[3].T).T
    assert rel(x, y) < 1e-10
    (x * w).sum().backward()
    (y * w).sum().backward()
    return max(rel(p.grad, q.grad) for p, q in zip(a, b))


bad, good = run("brine_inversion"), run("brine_inversion", fix)
print(against_dense(bad), against_dense(good), bad["k_error"], good["k_error"], bad["misfit"], good["misfit"])
assert against_dense(bad) > 0.05 and against_dense(good) < 1e-9
assert bad["k_error"] > 1.5 * good["k_error"]
