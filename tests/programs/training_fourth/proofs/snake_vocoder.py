import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("return grad_x, grad_alpha.sum(0)", "return grad_x, (grad_output * grad_alpha).sum(0)")
bad, good = run("snake_vocoder"), run("snake_vocoder", fix)


def check(r):
    x = torch.randn(6, 3, dtype=torch.double, requires_grad=True)
    a = (1 + torch.rand(3, dtype=torch.double)).requires_grad_()
    f = lambda x, a: r["SnakeFunction"].apply(x, a) * torch.arange(1.0, 19.0, dtype=torch.double).reshape(6, 3)
    return torch.autograd.gradcheck(f, (x, a), raise_exception=False)


assert not check(bad) and check(good)
# the gradient of alpha does not depend on the loss at all
x = torch.randn(6, 3)
grads = []
for factor in (1.0, -5.0):
    a = torch.ones(3, requires_grad=True)
    (factor * bad["SnakeFunction"].apply(x, a).sum()).backward()
    grads.append(a.grad)
assert torch.equal(*grads)
print(bad["error"], good["error"])
assert bad["error"] > 2 * good["error"]
