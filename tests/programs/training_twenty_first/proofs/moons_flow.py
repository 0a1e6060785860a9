import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("moons_flow")
good = run("moons_flow", ("t, s.sum()\n", "t, s.sum(-1)\n"))


def mass(res):
    """Integral of the model's density over a wide grid, one point at a time and all points at once."""
    g = torch.linspace(-4, 4, 161)
    pts = torch.cartesian_prod(g, g)
    with torch.no_grad():
        return (res["flow"].log_prob(pts).double().exp().sum() * 0.05 ** 2).item()


x = bad["test"][:256]
with torch.no_grad():
    together = bad["flow"].log_prob(x)[0].item()
    alone = bad["flow"].log_prob(x[:1])[0].item()
    together_g = good["flow"].log_prob(x)[0].item()
    alone_g = good["flow"].log_prob(x[:1])[0].item()
print("log p of the same point in a batch of 256 / alone:", together, alone, "repaired:", together_g, alone_g)
print("std of samples", bad["drawn"].std(0).tolist(), "repaired", good["drawn"].std(0).tolist(), "data 1.0")
print("held-out nll", bad["held_out"], "repaired", good["held_out"], "mass repaired", mass(good), "mass", mass(bad))
assert abs(together - alone) > 100 and abs(together_g - alone_g) < 1e-3
assert bad["drawn"].std(0).max() < 0.5 < 0.8 < good["drawn"].std(0).min()
assert bad["held_out"] < -1000 and 1 < good["held_out"] < 2.5 and abs(mass(good) - 1) < 0.1
