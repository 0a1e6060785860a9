"""Checks the sentence about runs of a model that change the data that they begin with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.standing_out import marked, sentences

ROLLOUT = """\
net = nn.Linear(3, 3)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
data = torch.randn(8, 5, 3)

@torch.no_grad()
def evaluate():
    state = data[:, 0]
    for t in range(1, 5):
        state += net(state)  #!
    return (state - data[:, 4]).square().mean()

for _ in range(4):
    loss = (net(torch.randn(8, 3)) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    evaluate()
"""
PARTS = ROLLOUT.replace("randn(8, 5, 3)", "randn(8, 5, 4)").replace("net = nn.Linear(3, 3)", "net = nn.Linear(4, 4)")
PARTS = PARTS.replace("randn(8, 3)", "randn(8, 4)").replace(
    "state = data[:, 0]", "first, last = data[:, 0].split(2, 1)"
)
PARTS = PARTS.replace(
    "state += net(state)  #!",
    "state = torch.cat([first, last], 1)\n        last += net(state)[:, 2:]  #!\n        first += last",
).replace("(state - data[:, 4])", "(first - data[:, 4, :2])")
WRONG = {
    "a view": ROLLOUT,
    "the first of several": ROLLOUT.replace("state = data[:, 0]", "state, *rest = data.unbind(1)"),
    "select": ROLLOUT.replace("data[:, 0]", "data.select(1, 0)"),
    "another shape": ROLLOUT.replace("data[:, 0]", "data.narrow(1, 0, 1).squeeze(1)"),
    "a method": ROLLOUT.replace("state += net(state)", "state.add_(net(state), alpha=0.5)"),
    "two parts": PARTS,
    "a leap between two halves": PARTS.replace(
        "        first += last", "        last += net(state)[:, :2]\n        first += last"),
    "an item of a view": ROLLOUT.replace("state += net(state)", "state[:, 1:] += net(state)[:, 1:]"),
}  # fmt: skip
RIGHT = {
    "two parts of a copy": PARTS.replace("data[:, 0].split", "data[:, 0].clone().split"),
    "parts of an average": PARTS.replace("data[:, 0].split(2, 1)", "data[:, 0].split(1, 1)[:2]").replace(
        "    for t in range(1, 5):\n", "").replace(
        PARTS[PARTS.index("        state = torch"):PARTS.index("    return")],
        "    for part in (first, last):\n        part += 0.1 * (net.weight.mean() - part)\n"),
    "a copy of a part of several": ROLLOUT.replace("data[:, 0]", "data.unbind(1)[0].clone()"),
    "another part each time": ROLLOUT.replace("data[:, 0]", "data.unbind(1)[kept]").replace(
        "def evaluate():", "def evaluate(kept):").replace("    evaluate()", "    evaluate(_)"),
    "other rows each time": ROLLOUT.replace("data[:, 0]", "data.select(1, kept)").replace(
        "def evaluate():", "def evaluate(kept):").replace("    evaluate()", "    evaluate(_)"),
    "a copy": ROLLOUT.replace("data[:, 0]", "data[:, 0].clone()"),
    "out of place": ROLLOUT.replace("state += net(state)", "state = state + net(state)"),
    "new data": ROLLOUT.replace("    state = data[", "    data = torch.randn(8, 5, 3)\n    state = data["),
    "a state that goes on": ROLLOUT.replace("    state = data[:, 0]\n", "").replace(
        "@torch", "state = data[:, 0]\n@torch").replace(
        "state += net(state)", "state.add_(net(state))"),
    "once": ROLLOUT.replace("    evaluate()\n", "evaluate()\n"),
    "no model": ROLLOUT.replace("state += net(state)", "state += 0.1"),
    "another row each time": ROLLOUT.replace("data[:, 0]", "data[:, kept]").replace(
        "def evaluate():", "def evaluate(kept):").replace("    evaluate()", "    evaluate(_)"),
    "an average in a row": ROLLOUT.replace("    for t in range(1, 5):\n        state", "    state"),
    "an array behind it": ROLLOUT.replace("torch.randn(8, 5, 3)\n", "torch.from_numpy(array)\n")
    .replace("data =", "import numpy as np\narray = np.ones((8, 5, 3), dtype=np.float32)\ndata =")
    .replace("    evaluate()", "    array[:] = 1\n    evaluate()"),
    "chains of samples": ROLLOUT.replace("net(state)", "0.01 * net(state) + 0.1 * torch.randn(8, 3)"),
    "by another input": ROLLOUT.replace("net(state)", "net(torch.ones(8, 3))"),
    "set anew": ROLLOUT.replace("    for t in", "    state.copy_(torch.zeros(8, 3))\n    for t in"),
}  # fmt: skip
WORDS = "begins with what the one before has left there"


@pytest.mark.parametrize("name", WRONG)
def test_a_run_that_changes_its_start_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert re.search("changes `data` in place, because `.+` is a view of it: each of 4 runs", found.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_runs_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
