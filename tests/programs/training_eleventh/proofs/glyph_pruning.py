import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("    optimizer.step()\n", "    optimizer.step()\n    with torch.no_grad():\n        for l, m in pruner.masks.items():\n            l.weight.mul_(m)\n")


def look(r):
    masks = r["pruner"].masks
    nonzero = sum((l.weight != 0).sum().item() for l in masks) / sum(m.numel() for m in masks.values())
    said = r["pruner"].density().item()
    size = max((l.weight * (1 - m)).abs().max().item() for l, m in masks.items())
    torch.manual_seed(0)
    before = r["accuracy"](r["model"])
    with torch.no_grad():
        for l, m in masks.items():
            l.weight.mul_(m)
    torch.manual_seed(0)
    after = r["accuracy"](r["model"])
    print("said", said, "non-zero", nonzero, "largest pruned", size, "accuracy as reported", before, "with the pruned at zero", after)
    return said, nonzero, before, after


bad, good = look(run("glyph_pruning")), look(run("glyph_pruning", FIX))
assert bad[1] > bad[0] + 0.3 and abs(good[1] - good[0]) < 1e-3
assert good[1] < 0.06 and bad[1] > 0.9
