import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch

fix = ("        grad_output[x.abs() > 1] = 0\n        return grad_output\n", "        return grad_output * (x.abs() <= 1)\n")
w, f = run("binary_residual_net"), run("binary_residual_net", fix)


def residual_grad(r):
    x = torch.tensor([0.5, 3.0, -0.2, -5.0], requires_grad=True)
    h = (x * 1.0).requires_grad_(True)
    y = x + r["SignSTE"].apply(h)
    (y * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    return x.grad


def stem_grad(r, state):
    m = r["BinaryResNet"]()
    m.load_state_dict(state)
    torch.manual_seed(0)
    x, y = torch.randn(64, 20), torch.randint(0, 4, (64,))
    torch.nn.functional.cross_entropy(m(x), y).backward()
    return m.stem.weight.grad, m.head.weight.grad


print("gradient of x + sign(x): wrong", residual_grad(w).tolist(), "fixed", residual_grad(f).tolist())
assert residual_grad(f).tolist() == [2.0, 2.0, 6.0, 4.0]
assert residual_grad(w).tolist() != residual_grad(f).tolist()
gw, gf = stem_grad(w, f["model"].state_dict()), stem_grad(f, f["model"].state_dict())
print("relative error of the stem's gradient", rel(gw[0], gf[0]), "of the head's", rel(gw[1], gf[1]))
assert rel(gw[0], gf[0]) > 0.3 and rel(gw[1], gf[1]) < 1e-6
