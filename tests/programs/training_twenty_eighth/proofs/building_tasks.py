import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("torch.softmax(stacked / self", "torch.softmax(stacked.detach() / self")
wrong, right = run("building_tasks"), run("building_tasks", FIX)
losses = {"heat": 3.5, "power": 0.3, "air": 0.3}


def shares(result):
    leaves = {k: torch.tensor(v, requires_grad=True) for k, v in losses.items()}
    result["LossBalancer"]()(leaves).backward()
    return {k: v.grad.item() for k, v in leaves.items()}


expected = 3 * torch.softmax(torch.tensor(list(losses.values())), 0)
good, bad = shares(right), shares(wrong)
print(good, bad)
assert torch.allclose(torch.tensor(list(good.values())), expected)
assert bad["power"] < 0 and bad["air"] < 0  # the update raises these losses
print(wrong["final"], right["final"])
for task in ("power", "air"):
    assert wrong["final"][task] > wrong["spread"][task] * 0.9
    assert right["final"][task] < wrong["final"][task] * 0.3
