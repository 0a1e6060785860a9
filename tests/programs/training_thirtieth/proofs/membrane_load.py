import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ('''    d2u = torch.autograd.grad(du.sum(), xy, create_graph=True)[0]
    return d2u.sum(dim=1, keepdim=True)''',
       '''    return sum(torch.autograd.grad(du[:, i].sum(), xy, create_graph=True)[0][:, i:i + 1] for i in range(2))''')
wrong, fixed = run("membrane_load"), run("membrane_load", FIX)

# the operator: x * y is harmonic, its Laplacian is 0
xy = torch.rand(20, 2).requires_grad_(True)
u = xy[:, :1] * xy[:, 1:]
assert torch.allclose(wrong["laplacian"](u, xy), torch.full((20, 1), 2.0))
assert torch.allclose(fixed["laplacian"](u, xy), torch.zeros(20, 1))

# the field: five-point differences on the same 41 x 41 grid
n, h = 39, 1 / 40
one = 2 * torch.eye(n, dtype=torch.float64) - torch.diag(torch.ones(n - 1, dtype=torch.float64), 1) - torch.diag(torch.ones(n - 1, dtype=torch.float64), -1)
eye = torch.eye(n, dtype=torch.float64)
A = (torch.kron(one, eye) + torch.kron(eye, one)) / h ** 2
t = torch.linspace(0, 1, 41)[1:-1]
grid = torch.stack(torch.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2)
ref = torch.linalg.solve(A, wrong["load"](grid).double()).reshape(n, n)
ew = rel(wrong["deflection"][1:-1, 1:-1].double(), ref)
ef = rel(fixed["deflection"][1:-1, 1:-1].double(), ref)
print("loss", wrong["losses"][0], wrong["losses"][-1], "| fixed", fixed["losses"][0], fixed["losses"][-1], "| error", ew, ef)
assert fixed["losses"][-1] < 0.05 * fixed["losses"][0] and wrong["losses"][-1] > 0.2 * wrong["losses"][0]
assert ew > 0.25 and ef < 0.05
