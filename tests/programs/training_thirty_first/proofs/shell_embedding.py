import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

NAME = "shell_embedding"
REPAIR = (".sum(-1).sqrt()", ".sum(-1).clamp_min(1e-12).sqrt()")
PROBE = ("    losses = []\n", "    losses = []\n    first = [p.detach().clone() for p in encoder.parameters()]\n")


def moved(space):
    return [rel(p.detach(), q) for p, q in zip(space["encoder"].parameters(), space["first"])]


written = run(NAME, PROBE)
fixed = run(NAME, PROBE, REPAIR)
mean = lambda values: sum(values) / len(values)
print("moved", max(moved(written)), min(moved(fixed)))
print("loss", mean(written["losses"][:20]), mean(written["losses"][-20:]), "|", mean(fixed["losses"][:20]), mean(fixed["losses"][-20:]))
assert torch.isnan(flat_grad(written["encoder"])).any()
assert not torch.isnan(flat_grad(fixed["encoder"])).any()
assert max(moved(written)) == 0.0 and len(written["optimizer"].state) == 0
assert min(moved(fixed)) > 1e-3
assert abs(mean(written["losses"][-40:]) / mean(written["losses"][:40]) - 1) < 0.1
assert mean(fixed["losses"][-20:]) < 0.8 * mean(fixed["losses"][:20])
