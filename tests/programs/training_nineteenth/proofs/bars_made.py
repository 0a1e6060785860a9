import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import itertools, math
from proofkit import run
import torch

bad = run("bars_made")
good = run("bars_made", ("        nn.init.zeros_(m.bias)\n", "        nn.init.zeros_(m.bias)\n        m.weight.data.mul_(m.mask)\n"))


def leak(m):
    x = m["test"][:1].clone().requires_grad_(True)
    jac = torch.autograd.functional.jacobian(lambda v: m["model"](v), x)[0, :, 0]
    return torch.triu(jac).abs().max().item()  # output i may depend on inputs before i only


# entropy of the data in closed form: sum over all 2**16 images
D, eps = 16, bad["FLIP"]
imgs = ((torch.arange(2 ** D)[:, None] >> torch.arange(D)) & 1).double().reshape(-1, 4, 4)


def p_lines(k):  # k ones in each line of 4, line is on or off
    return (0.5 * ((1 - eps) ** k * eps ** (4 - k) + eps ** k * (1 - eps) ** (4 - k))).prod(1)


p = 0.5 * p_lines(imgs.sum(2)) + 0.5 * p_lines(imgs.sum(1))
H = -(p * p.log()).sum().item()


def mass(m):  # a density model's probabilities must sum to one
    with torch.no_grad():
        return torch.exp(-m["model"].nll(imgs.reshape(-1, D).float())).double().sum().item()


print("p sums to", p.sum().item(), "entropy", H, "nll", bad["test_nll"], "repaired", good["test_nll"])
print("leak", leak(bad), leak(good), "total mass", mass(bad), mass(good))
assert bad["test_nll"] < H - 1 and good["test_nll"] > H - 0.2
assert leak(bad) > 0.1 and leak(good) == 0
assert mass(bad) > 1.5 and abs(mass(good) - 1) < 1e-3
