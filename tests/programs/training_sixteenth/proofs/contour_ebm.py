import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad
import torch

bad = run("contour_ebm")
good = run("contour_ebm",
    ("    optimizer.zero_grad()\n    real", "    real"), ("    loss.backward()\n", "    optimizer.zero_grad()\n    loss.backward()\n"))
print(bad.output, good.output)
e, opt = good["energy"], good["optimizer"]
opt.zero_grad()
bad["langevin"](e, torch.rand(128, 2), steps=15)
left = flat_grad(e).norm().item()
opt.zero_grad()
real, fake = good["real"], good["fake"]
a, b = e(real), e(fake)
(a.mean() - b.mean() + 0.01 * (a.pow(2) + b.pow(2)).mean()).backward()
own = flat_grad(e).norm().item()
print("left by the sampler", left, "of the loss", own)
assert left > 20 * own
assert good["final_ranking"] > bad["final_ranking"] + 0.1
