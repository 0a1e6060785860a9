import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("self.cell(x, state.detach())", "self.cell(x, state)")
bad, good = run("delayed_load"), run("delayed_load", fix)


def reach(r):
    x = torch.randn(2, 12, 1, requires_grad=True)
    y, _ = r["model"](x, r["model"].start(2))
    return torch.autograd.grad(y[:, -1].sum(), x)[0].abs().sum((0, 2))


print(reach(bad), reach(good), "mse", bad["error"], good["error"])
assert (reach(bad)[:-1] == 0).all() and (reach(good)[-6] > 0)
assert bad["error"] > 2 * good["error"]
