import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
OLD = "        self.base_optimizer = base_optimizer(base_groups, **kwargs)\n"
NEW = OLD + """        for g in self.base_optimizer.param_groups:
            g["rho"] = rho
        self.param_groups = self.base_optimizer.param_groups
"""
PROBE = ("            sched.step()\n", "            PROBE(opt, model)\n            sched.step()\n")


def measure(*edits):
    lrs, moves, last = [], [], []

    def probe(opt, model):
        flat = torch.cat([p.detach().flatten() for p in model.parameters()])
        lrs.append((opt.param_groups[0]["lr"], opt.base_optimizer.param_groups[0]["lr"]))
        if last:
            moves.append((flat - last[0]).norm().item())
        last[:] = [flat]

    run("heron_classes", *edits, PROBE, inject={"PROBE": probe})
    return lrs, moves


(lr_bad, mv_bad), (lr_good, mv_good) = measure(), measure((OLD, NEW))
print("last step moved:", mv_bad[-1], mv_good[-1])
assert all(b == 0.3 for _, b in lr_bad) and lr_bad[-1][0] < 1e-4
assert all(a == b for a, b in lr_good)
assert mv_bad[-1] > 100 * mv_good[-1]
