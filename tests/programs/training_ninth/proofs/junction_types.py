import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

w = run("junction_types", capture=("fit",))
f = run("junction_types", ("        return value\n", ""), capture=("fit",))
gw = {n: p.grad for n, p in w["model"].named_parameters()}
gf = {n: p.grad for n, p in f["model"].named_parameters()}
for n in gw:
    first = n.startswith("conv1.")
    assert (gw[n] is None) == first, n
    assert gf[n] is not None, n
for n, p in w["model"].named_parameters():
    moved = not torch.equal(p.detach(), w["start"][n])
    assert moved != n.startswith("conv1."), n
print("loss", w["loss"], f["loss"], "test", w["test"], f["test"])
