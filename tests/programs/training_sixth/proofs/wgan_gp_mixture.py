import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch


def facts(r):
    gp = r["gradient_penalty"](r["critic"], r["ring"](256), r["generator"](256).detach())
    if not gp.requires_grad:
        return 0.0, gp.item(), r["history"]
    g = torch.autograd.grad(gp, list(r["critic"].parameters()), allow_unused=True)
    return sum(x.norm().item() for x in g if x is not None), gp.item(), r["history"]


w = facts(run("wgan_gp_mixture"))
f = facts(run("wgan_gp_mixture", ("        retain_graph=True,\n", "        create_graph=True,\n")))
print("gradient of the penalty: wrong", w[0], "fixed", f[0], "penalty: wrong", w[1], "fixed", f[1])
assert w[0] == 0.0 and f[0] > 1e-3
assert w[1] > 5 * f[1]
