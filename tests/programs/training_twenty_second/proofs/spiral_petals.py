import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import math
import torch

torch.set_num_threads(1)
OLD = "            y[torch.rand(len(y)) < p_uncond] = NULL\n"
NEW = "            y = y.masked_fill(torch.rand(len(y)) < p_uncond, NULL)\n"


def measure(*edits):
    r = run("spiral_petals", *edits, capture=("main",))
    loc = r.locals["main"]
    _, clean = r["make_petals"](2048, torch.Generator().manual_seed(5))
    kept = (loc["labels"] == clean).float().mean().item()
    n = r["N_CLASSES"]
    ang = 2 * math.pi * torch.arange(n) / n
    centers = 2 * torch.stack([ang.cos(), ang.sin()], 1) / 1.45
    hit = (torch.cdist(loc["samples"], centers).argmin(1) == loc["wanted"]).float().mean().item()
    # conditional denoising error of fresh points
    x0, y = r["make_petals"](4000, torch.Generator().manual_seed(99))
    g = torch.Generator().manual_seed(1)
    t, eps = torch.randint(r["T"], (4000,), generator=g), torch.randn(4000, 2, generator=g)
    with torch.no_grad():
        mse = (loc["model"](loc["schedule"].noise(x0, t, eps), t, y) - eps).pow(2).mean().item()
    return kept, hit, mse


bad, good = measure(), measure((OLD, NEW))
print("labels intact, samples of the wanted class, held-out conditional mse:", bad, good)
assert good[0] == 1.0 and bad[0] < 0.1
assert bad[2] > good[2] * 1.03
