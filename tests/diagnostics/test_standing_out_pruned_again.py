"""Checks the sentence about masks that are applied to parameters once, before the steps that follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
PRUNE = """\
def prune(module):
    with torch.no_grad():
        mask = (module.weight.abs() > module.weight.abs().median()).float()
        module.weight.mul_(mask)  #!
    return mask

"""
STEP = """\
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
ONCE = "for step in range(8):\n" + STEP + "    if step == 3:\n        prune(net[0])\n"
WRONG = {
    "in the middle": NET + PRUNE + ONCE,
    "by .data": NET + PRUNE.replace("module.weight.mul_(mask)", "module.weight.data *= mask") + ONCE,
    "a bool": NET + PRUNE.replace(".float()", "") + ONCE,
}  # fmt: skip
RIGHT = {
    "after each step": NET + PRUNE + "mask = prune(net[0])\nfor step in range(6):\n" + STEP
    + "    with torch.no_grad():\n        net[0].weight.mul_(mask)\n",
    "masked gradients": NET + PRUNE + "mask = prune(net[0])\nfor step in range(6):\n"
    + STEP.replace("    opt.step()", "    net[0].weight.grad.mul_(mask)\n    opt.step()"),
    "a hook": NET + PRUNE + "mask = prune(net[0])\nnet[0].weight.register_hook(lambda grad: grad * mask)\n"
    "for step in range(6):\n" + STEP,
    "at the end": NET + PRUNE + "for step in range(6):\n" + STEP + "prune(net[0])\n",
    "frozen": NET + PRUNE + "prune(net[0])\nnet[0].requires_grad_(False)\nfor step in range(6):\n" + STEP,
    "shrunk": NET + "for step in range(6):\n" + STEP
    + "    if step == 2:\n        net[0].weight.data.mul_(torch.ones(8, 1))\n",
}  # fmt: skip
WORDS = "by a mask before"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_is_applied_once_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_mask_that_is_kept_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
