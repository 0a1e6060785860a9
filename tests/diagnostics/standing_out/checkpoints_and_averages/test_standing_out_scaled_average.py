"""Checks the sentence about averages of trained copies whose weights do not sum to 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

TEXT = """\
import copy
import torch.nn.functional as F
def train(model):
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(3):
        x = torch.randn(16, 6)
        loss = F.mse_loss(model(x), x[:, :1] + 1)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.state_dict()
def average(states, sizes):
    total = {}
    for state, size in zip(states, sizes):
        weight = size / 100  #!
        for name, value in state.items():
            total[name] = total.get(name, 0) + weight * value
    return total
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
for _ in range(4):
    states = [train(copy.deepcopy(net)) for _ in range(3)]
    net.load_state_dict(average(states, [20, 15, 25]))
"""
AVERAGE = TEXT[TEXT.index("def average") : TEXT.index("net = nn")]
KEPT = TEXT.replace("for _ in range(4):", "clients = [copy.deepcopy(net) for _ in range(3)]\nfor _ in range(4):")
KEPT = KEPT.replace("train(copy.deepcopy(net)) for _ in range(3)", "train(load(client)) for client in clients").replace(
    "def average", "def load(client):\n    client.load_state_dict(net.state_dict())\n    return client\ndef average"
)


def averaged(body: str, text: str = TEXT) -> str:
    """Returns a script with another average."""
    assert AVERAGE in text
    return text.replace(AVERAGE, "def average(states, sizes):\n" + body)


ADDED = """\
    total = {name: torch.zeros_like(value) for name, value in states[0].items()}
    for state, size in zip(states, sizes):
        for name, value in state.items():
            total[name].add_(value, alpha=size / 100)  #!
    return total
"""
SUMMED = """\
    weights = [size / 100 for size in sizes]  #!
    return {name: sum(w * state[name] for w, state in zip(weights, states)) for name in states[0]}
"""
STACKED = """\
    def mean(values):
        weights = torch.tensor(sizes) / 100  #!
        return (torch.stack(values) * weights.view(-1, *[1] * values[0].dim())).sum(0)
    return {name: mean([state[name] for state in states]) for name in states[0]}
"""
DELTAS = """\
    old = net.state_dict()
    return {name: value + sum(0.2 * (state[name] - value) for state in states) for name, value in old.items()}
"""
WRONG = {
    "a sum in a loop": TEXT,
    "copies that stay": KEPT,
    "added in place": averaged(ADDED),
    "a sum of products": averaged(SUMMED, KEPT),
    "a product with a tensor": averaged(STACKED),
}
LOADED = "    net.load_state_dict(average(states, [20, 15, 25]))\n"
THREE_OF_FIVE = averaged("""\
    chosen = torch.randperm(5)[:3].tolist()
    weights = [SCALE * [60, 20, 40, 80, 120][k] / 320 for k in chosen]
    return {name: sum(w * state[name] for w, state in zip(weights, states)) for name in states[0]}
""").replace("range(4)", "range(8)")
ADAPTERS = averaged(SUMMED.replace("100", "40").replace("sizes]", "sizes[:2]]")).replace("  #!", "").replace(
    "net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))\n", (
        "base = nn.Linear(6, 1).requires_grad_(False)\n"
        "net = nn.Sequential(nn.Linear(6, 2, bias=False), nn.Linear(2, 1, bias=False))\n"
        "nn.init.zeros_(net[1].weight)\n")).replace("model(x), x", "base(x) + model(x), x")  # fmt: skip
RIGHT = {
    "a random part of the copies, as an unbiased estimate": THREE_OF_FIVE.replace("SCALE", "5 / 3"),
    "adapters of a frozen layer, put together": ADAPTERS,
    "data that is scaled later": TEXT.replace(LOADED, LOADED + (
        "    for each in net.parameters():\n        each.data = each.data / 0.6\n")),
    "values of the load that are scaled and loaded": TEXT.replace(LOADED, LOADED + (
        "    net.load_state_dict({name: value / 0.6 for name, value in net.state_dict().items()})\n")),
    "weights of 1": TEXT.replace("100", "60"),
    "stacked weights of 1": averaged(STACKED.replace("100", "60")),
    "a part of the updates": averaged(DELTAS),
    "a sum that is scaled later": TEXT.replace("[20, 15, 25]))", (
        "[20, 15, 25]))\n    with torch.no_grad():\n        for each in net.parameters():\n"
        "            each.div_(0.6)")),
    "models that are no copies": TEXT.replace(
        "copy.deepcopy(net)", "nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))"),
    "a difference": averaged(
        "    one, two, _ = states\n    return {name: 1.5 * one[name] - 0.6 * two[name] for name in one}\n"),
    "a sum with a negative weight": averaged(
        "    one, two, _ = states\n    return {name: 1.5 * one[name] + -0.6 * two[name] for name in one}\n"),
}  # fmt: skip
CHOSEN = {
    "a random part of the copies": THREE_OF_FIVE.replace("SCALE", "1"),
    "copies with a part of zeros": ADAPTERS.replace("base(x) + ", "").replace(
        "base = nn.Linear(6, 1).requires_grad_(False)\n", ""
    ),
}
WORDS = "whose weights sum to"


@pytest.mark.parametrize("name", WRONG)
def test_a_scaled_average_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "3 trained copies of it, whose weights sum to 0.6, " in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", CHOSEN)
def test_sums_that_differ_and_modules_with_zeros_are_named(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, CHOSEN[name]) if WORDS in each.text]


@pytest.mark.parametrize("name", RIGHT)
def test_other_loads_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
