import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, in_optimizer

CALL = "    model.set_grid(size // PATCH)\n"
FIX = (CALL, CALL + '    optimizer.param_groups[1]["params"] = [p for p in model.parameters() if p.ndim != 2]\n')
KEEP = (CALL, CALL + "    resampled = model.pos.detach().clone()\n")
bad = run("patch_vit", KEEP)
good = run("patch_vit", FIX, ("    for step in range(steps):\n", "    resampled = model.pos.detach().clone()\n    for step in range(steps):\n"))
same = torch.equal(bad["resampled"], bad["model"].pos.detach())
moved = (good["resampled"] - good["model"].pos.detach()).norm().item()
print("position table is in the optimizer:", in_optimizer(bad["model"].pos, bad["optimizer"]), "repaired", in_optimizer(good["model"].pos, good["optimizer"]))
print("unchanged over the last stage although it has a gradient:", same, bad["model"].pos.grad.norm().item(), "repaired: moved by", moved)
print("top-1", bad["top1"], "repaired", good["top1"])
assert same and bad["model"].pos.grad is not None and moved > 0.1
assert not in_optimizer(bad["model"].pos, bad["optimizer"]) and in_optimizer(good["model"].pos, good["optimizer"])
assert good["top1"] > bad["top1"] + 0.3
