"""Checks the sentence about learning rates whose schedule has ended with the first of several rounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = """\
import math
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
def train_step():
    loss = net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BY_HAND = (
    HEAD
    + """\
done, PER = 0, 20
for task in range(4):
    for i in range(PER):
        opt.param_groups[0]["lr"] = 0.01 * max(0.02, 0.5 * (1 + math.cos(math.pi * min(1, done / PER))))  #!
        train_step()
        done += 1
"""
)
SCHEDULER = (
    HEAD
    + """\
def rate(n, warm=5, total=20):
    return (n + 1) / warm if n < warm else max(0.01, 1 - (n - warm) / (total - warm))
schedule = torch.optim.lr_scheduler.LambdaLR(opt, rate)  #!
def fit(task):
    for i in range(20):
        train_step()
        schedule.step()
for task in ["near", "far", "all"]:
    fit(task)
"""
)
WRONG = {
    "by hand": BY_HAND,
    "in a method": HEAD
    + """\
class Ramp:
    def __init__(self, total):
        self.total, self.done = total, 0
    def step(self):
        for group in opt.param_groups:
            group.update(lr=0.01 * max(0.01, 1 - self.done / self.total))  #!
        self.done += 1
ramp, level = Ramp(20), 0
while level < 3:
    for i in range(20):
        ramp.step()
        train_step()
    print(net.weight.norm().item())
    level += 1
""",
    "by hand, with a count of the rounds": BY_HAND.replace("for task in range(4):", "task = 0\nwhile task < 4:")
    + ("    print(net.weight.norm().item())\n    task += 1\n"),
    "a scheduler": SCHEDULER,
}
RIGHT = {
    "all rounds": BY_HAND.replace("done / PER", "done / PER / 4"),
    "each round": BY_HAND.replace("done / PER", "i / PER"),
    "several of many rounds": BY_HAND.replace("range(4)", "range(16)").replace("PER = 0, 20", "PER = 0, 5").replace(
        "done / PER", "done / (5 * PER)"),
    "a high floor": BY_HAND.replace("max(0.02", "max(0.2"),
    "steps of rounds": BY_HAND.replace("max(0.02", "0.2 ** min(task, 2) if task + 1 else max(0.02"),
    "a scheduler of all": SCHEDULER.replace("total=20", "total=60"),
    "a rate of its own for later rounds": BY_HAND.replace("done, PER = 0, 20\n", """\
done, PER = 0, 20
def rate(task, batch):
    if task:
        return 0.0002
    return 0.0002 + 0.0098 * (1 - batch / (PER - 1))
""").replace("0.01 * max(0.02, 0.5 * (1 + math.cos(math.pi * min(1, done / PER))))", "rate(task, i)"),
    "a plan that reads the round": SCHEDULER.replace("def rate(n, warm=5, total=20):\n", """\
class Plan:
    later = False
def rate(n, warm=5, total=20):
    if Plan.later: return 0.01
""").replace("def fit(task):\n", "def fit(task):\n    Plan.later = task != 'near'\n").replace("  #!", ""),
    "one loop": BY_HAND.replace("for task in range(4)", "for task in range(1)").replace("range(PER)", "range(4 * PER)"),
}  # fmt: skip
WORDS = "in the first round of a loop"


@pytest.mark.parametrize("name", WRONG)
def test_a_schedule_of_the_first_round_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.text.startswith("the learning rate of `Adam` falls to 0.000")
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_schedules_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
