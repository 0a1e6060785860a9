import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("self.step = nn.Parameter(estimate)", "self.step.data.copy_(estimate)")

wrong = run("grain_bits", capture=("main",))
right = run("grain_bits", FIX, capture=("main",))


def steps(program):
    return [p for n, p in program["net"].named_parameters() if n.endswith("step")]


def start(program):  # what min-max calibration gives on the weights the training started from
    reference = program.locals["main"]["reference"]
    high = 2 ** (program["BITS"] - 1) - 1
    return [m.weight.detach().abs().max() / high for m in reference if hasattr(m, "weight")]


listed = wrong.locals["main"]["steps"]
assert len(steps(wrong)) == len(listed) == 3
for p, old, s in zip(steps(wrong), listed, start(wrong)):
    assert p is not old and not in_optimizer(p, wrong["optimizer"])  # the net's step is in no group
    assert in_optimizer(old, wrong["optimizer"]) and old.grad is None and old.item() == 1.0
    assert torch.equal(p.detach(), s)  # it has not moved in the whole training
    assert p.requires_grad and p.grad is not None and p.grad.abs() > 0  # although it gets a gradient

for p, s in zip(steps(right), start(right)):
    assert in_optimizer(p, right["optimizer"]) and (p - s).abs() > 0.05 * s

print(wrong["final"], right["final"])
assert right["final"] < 0.6 * wrong["final"]
