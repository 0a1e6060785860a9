"""Checks the sentence about a learning rate that a line writes into one of several groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = (
    "net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))\nx, y = torch.randn(16, 4), torch.randn(16, 1)\n"
)
MADE = """\
opt = torch.optim.SGD([
    {"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.1},
    {"params": [p for p in net.parameters() if p.dim() < 2]},
], lr=0.1)
"""
TRAIN = """\
for step in range(6):
    opt.param_groups[0]["lr"] = 0.1 * (1 - step / 6)  #!
    opt.zero_grad()
    (net(x) - y).square().mean().backward()
    opt.step()
"""
ALL = "    for group in opt.param_groups:\n        group['lr'] = 0.1 * (1 - step / 6)\n"
LINE = '    opt.param_groups[0]["lr"] = 0.1 * (1 - step / 6)  #!\n'
WRONG = {
    "the first": NET + MADE + TRAIN,
    "the last": NET + MADE + TRAIN.replace("[0]", "[-1]"),
    "in a function": NET + MADE + "def set_rate(optimizer, rate):\n    optimizer.param_groups[0]['lr'] = rate  #!\n"
    + TRAIN.replace(LINE, "    set_rate(opt, 0.1 / (1 + step))\n"),
    "the next of an iterator": NET + MADE
    + TRAIN.replace(LINE, "    group = next(iter(opt.param_groups))\n    group['lr'] = 0.1 / (1 + step)  #!\n"),
    "an update": NET + MADE + TRAIN.replace(LINE, "    opt.param_groups[0].update(lr=0.1 / (1 + step))  #!\n"),
    "an argument": NET + MADE + "def set_rate(group, rate):\n    group |= {'lr': rate}  #!\n"
    + TRAIN.replace(LINE, "    set_rate(opt.param_groups[0], 0.1 / (1 + step))\n"),
    "an attribute": NET + MADE + "class Plan:\n    def __init__(self):\n        self.group, *_ = opt.param_groups\n"
    "    def step(self, rate):\n        self.group.update({'lr': rate})  #!\nplan = Plan()\n"
    + TRAIN.replace(LINE, "    plan.step(0.1 / (1 + step))\n"),
    "a loop that ends at once": NET + MADE + "def set_rate(rate):\n    for group in opt.param_groups:\n"
    "        group['lr'] = rate  #!\n        return rate\n" + TRAIN.replace(LINE, "    set_rate(0.1 / (1 + step))\n"),
    "multiplied": NET + MADE + TRAIN.replace("= 0.1 * (1 - step / 6)", "*= 0.9"),
}  # fmt: skip
RIGHT = {
    "all groups": NET + MADE + TRAIN.replace(LINE, ALL),
    "both by number": NET + MADE + TRAIN.replace(LINE, LINE.replace("  #!", "") + LINE.replace("[0]", "[1]")),
    "a group that a condition chooses": NET + MADE + TRAIN.replace(
        LINE, ALL.replace("        g", "        if not group['weight_decay']: continue\n        g") + "        break\n"
    ),
    "a group with a name": NET + MADE + TRAIN.replace(
        LINE, "    weights, biases = opt.param_groups\n    weights['lr'] = 0.1 * (1 - step / 6)\n"
    ),
    "all groups by update": NET + MADE + TRAIN.replace(
        LINE, "    for group in opt.param_groups: group.update(lr=0.1 * (1 - step / 6))\n"
    ),
    "a part of the groups": NET + MADE + TRAIN.replace(LINE, ALL.replace("opt.param_groups", "opt.param_groups[:1]")),
    "a group of two": NET + MADE + TRAIN.replace(
        LINE, "    group, _ = opt.param_groups\n    group['lr'] = 0.1 / (1 + step)\n"),
    "the other group has a name": NET + MADE
    + "def warm(group, step):\n    group.update(lr=0.1 / (1 + step))\ngroup, _bias_group = opt.param_groups\n"
    + TRAIN.replace(LINE, "    warm(group, step)\n"),
    "one group": NET + "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n" + TRAIN,
    "groups with rates of their own": NET + MADE.replace('"weight_decay": 0.1', '"lr": 0.01') + TRAIN,
    "a part that waits": NET + MADE + TRAIN.replace("0.1 * (1 - step / 6)", "0.0 if step < 2 else 0.1"),
    "a part that a flag frees": NET + MADE + TRAIN.replace("0.1 * (1 - step / 6)", "0.1 * (step > 2)"),
    "a rate that stays": NET + MADE + TRAIN.replace("0.1 * (1 - step / 6)", "0.1"),
    "a scheduler": NET + MADE + "schedule = torch.optim.lr_scheduler.LambdaLR(opt, [lambda n: 1.0, lambda n: 0.9**n])\n"
    + TRAIN + "    schedule.step()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_rate_of_one_group_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "group of `SGD` only" in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_rate_that_is_meant_for_a_group_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "group of `SGD` only" in each.text] == []
