"""Checks the sentence about a patience that counts all rounds without an improvement."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LOOP = """\
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x, y = torch.randn(24, 3), torch.randn(24, 1)
best, bad, patience = float("inf"), 0, 3
for epoch in range(4):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    val = (net(x) - y).abs().mean().item()
    if val < best:
        best = val
    else:
        bad += 1  #!
    if bad >= patience:
        break
"""
STOPPER = """\
class Stopper:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, None, 0
    def step(self, value):
        if self.best is None or value < self.best:
            self.best = value
        else:
            self.bad += 1  #!
        return self.bad >= self.patience
stopper = Stopper(3)
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x, y = torch.randn(24, 3), torch.randn(24, 1)
for epoch in range(4):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if stopper.step((net(x) - y).abs().mean().item()):
        break
"""
FIELDS = (
    STOPPER.replace("class", "from dataclasses import dataclass\n@dataclass\nclass")
    .replace("    def __init__(self, patience):\n", "    patience: int\n    best: float = float('inf')\n")
    .replace("        self.patience, self.best, self.bad = patience, None, 0\n", "    bad: int = 0\n")
    .replace("self.best is None or ", "")
)
WRONG = {"a loop": LOOP, "a class": STOPPER, "a dataclass": FIELDS}
RIGHT = {
    "set back": LOOP.replace("best = val", "best, bad = val, 0"),
    "set back by a class": STOPPER.replace("self.best = value", "self.best = value\n            self.bad = 0"),
    "set back from outside": FIELDS.replace("    loss =", "    stopper.bad *= epoch > 0\n    loss ="),
    "set back where the rate falls": LOOP.replace(
        "        break", "        opt.param_groups[0]['lr'] *= 0.5\n        bad = 0"
    ),
    "a budget": LOOP.replace("patience", "budget"),
    "a count": LOOP.replace("    if bad >= patience:\n        break\n", ""),
}
WORDS = "counts all rounds without an improvement"


@pytest.mark.parametrize("name", WRONG)
def test_a_count_that_is_never_set_back_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_counts_are_left_alone(tmp_path: Path, name: str) -> None:
    assert not [each for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text]
