import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
from proofkit import flat
import torch

torch.set_num_threads(1)
snap = ("head = nn.Linear(32, 3)\n", "head = nn.Linear(32, 3)\n    start = [torch.cat([p.detach().clone().flatten() for p in b.parameters()]) for b in encoder.blocks]\n")
fix = (("    for group in optimizer.param_groups:\n        group[\"lr\"] = lr\n",
        "    for group in optimizer.param_groups:\n        group[\"lr\"] = lr * group.setdefault(\"scale\", group[\"lr\"] / cfg.lr)\n"),)


def look(*edits):
    r = run("willow_sonar", snap, *edits, capture=("main", "adjust_learning_rate"))
    m = r.locals["main"]
    lrs = [g["lr"] for g in m["optimizer"].param_groups]
    moved = [rel(flat(b), s) for b, s in zip(m["encoder"].blocks, m["start"])]
    print(r.output, lrs, moved, m["acc"])
    return lrs, moved, m["acc"]


lrs_bad, moved_bad, acc_bad = look()
lrs_good, moved_good, acc_good = look(*fix)
assert len(set(lrs_bad)) == 1  # every layer ends with the same rate: the layer-wise decay is gone
assert abs(lrs_good[0] / lrs_good[-1] - 0.5 ** 4) < 1e-6
assert moved_bad[0] > 3 * moved_good[0]
