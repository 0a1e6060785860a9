import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import math
import torch

torch.set_num_threads(1)
fix = ("views = torch.stack([augment(x, gen), augment(x, gen)], dim=1)", "views = torch.stack([augment(x, gen), augment(x, gen)], dim=0)")
probes = []
for seed in (31, 41, 51):
    edit = ("torch.manual_seed(31)", f"torch.manual_seed({seed})")
    wrong, fixed = run("glyph_simclr", edit), run("glyph_simclr", edit, fix)
    last = [float(r.output.split("contrastive loss ")[4].split()[0]) for r in (wrong, fixed)]
    probes.append((wrong["probe_acc"], fixed["probe_acc"]))
    print(seed, "probe", probes[-1], "contrastive loss", last, "chance", math.log(127))
    assert abs(last[0] - math.log(127)) < 0.01 and last[1] < last[0] - 0.3
    assert probes[-1][1] > probes[-1][0] + 0.05
# row i and its partner come from different images
x = torch.arange(4.0)
views, partner = torch.stack([x, x], dim=1).flatten(), torch.arange(8).roll(4)
assert (views != views[partner]).all()
