import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch

fix = ("            grad = g\n", "            return g\n")


def error(r):
    m, x, y = r["model"], r["x_train"][:64], r["y_train"][:64]
    m.train()
    m.deq.tol, m.deq.max_iter = 1e-6, 300
    ps = list(m.deq.parameters())
    mine = torch.autograd.grad(torch.nn.functional.mse_loss(m(x), y), ps)
    z = torch.zeros(64, m.deq.dim)
    for _ in range(300):
        z = m.deq.cell(z, x)
    exact = torch.autograd.grad(torch.nn.functional.mse_loss(m.head(m.norm(z)).squeeze(-1), y), ps)
    cat = lambda gs: torch.cat([g.flatten() for g in gs])
    return rel(cat(mine), cat(exact))


w, f = error(run("deq_regression")), error(run("deq_regression", fix))
print("relative error of the cell's gradient against the unrolled solver: wrong", w, "fixed", f)
assert w > 0.1 and f < 0.01
