"""Checks what `--training` says about samples that a program evaluates on after it has trained on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "samples that are evaluated had been trained on"
SCRIPT = """\
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split
data = TensorDataset(torch.randn(200, 4), torch.randint(0, 2, (200,)))
{parts}
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(part):
    for x, y in DataLoader(part, batch_size=20, shuffle=True):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
def evaluate(part):
    with torch.no_grad():
        return sum((net(x).argmax(1) == y).sum() for x, y in DataLoader(part, batch_size=20))
for epoch in range(3):
    train(first)
    evaluate(second)
{end}
"""
SPLIT = """\
def part(place):
    return random_split(data, [150, 50])[place]  #!
first, second = part(0), part(1)
"""
ORDERS = """\
first = Subset(data, torch.randperm(200)[:160].tolist())
second = Subset(data, torch.randperm(200)[160:].tolist())  #!
"""
FOLDS = """\
for fold in range(3):
    first, second = random_split(data, [150, 50])
    net = nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    evaluate(second)
    train(first)
    evaluate(second)
"""
MEMBERS = """\
members = []
for member in range(2):
    first, second = random_split(data, [150, 50])
    net = nn.Linear(4, 2)
    members.append((net, torch.optim.SGD(net.parameters(), lr=0.1), first, second))
for net, opt, first, second in members:
    train(first)
    evaluate(second)
"""
PILOT = """\
first, rest = random_split(data, [100, 100])
second, _ = random_split(data, [100, 100])
"""
ANEW = """\
for module in (net,):
    module.weight.data.normal_(0, 0.1)
    module.bias.data.zero_()
first, second = random_split(data, [150, 50])
evaluate(second)
train(first)
"""
ORDER = """\
first = Subset(data, torch.randperm(200)[:40].tolist())
second = Subset(data, torch.randperm(200)[:60].tolist())
"""
WRONG = {"two splits": SCRIPT.format(parts=SPLIT, end=""), "two orders": SCRIPT.format(parts=ORDERS, end="")}
RIGHT = {
    "one split": SCRIPT.format(parts="first, second = random_split(data, [150, 50])", end=""),
    "the same split again": SCRIPT.format(
        parts=SPLIT.replace("    return", "    torch.manual_seed(3)\n    return").replace("  #!", ""), end=""
    ),
    "some samples of the part": SCRIPT.format(
        parts="first, _ = random_split(data, [150, 50])\nsecond = Subset(first, range(40))", end=""
    ),
    "the same samples": SCRIPT.format(
        parts="first, _ = random_split(data, [150, 50])\nsecond = Subset(data, first.indices[:40])", end=""
    ),
    "members that are made first": SCRIPT.format(parts="first, second = random_split(data, [150, 50])", end=MEMBERS),
    "the rest and a random half": SCRIPT.format(parts=PILOT, end="").replace(
        "    evaluate(second)", "    evaluate(rest)\n    evaluate(second)"
    ),
    "weights that are drawn anew": SCRIPT.format(
        parts="first, _ = random_split(data, [150, 50])\nsecond = first", end=ANEW
    ),
    "a sample of all to watch": SCRIPT.format(parts=ORDER, end=""),
    "some of all, beside a test set": SCRIPT.format(parts=SPLIT.replace("  #!", ""), end="").replace(
        "    evaluate(second)", "    evaluate(second)\n    evaluate(TensorDataset(torch.randn(40, 4), torch.zeros(40)))"
    ),
    "folds, each with a new model": SCRIPT.format(parts="first, second = random_split(data, [150, 50])", end=FOLDS),
}


@pytest.mark.parametrize("name", WRONG)
def test_samples_that_were_trained_on_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert marked(WRONG[name]) in {label.span.line for label in found.labels[:2]}


@pytest.mark.parametrize("name", RIGHT)
def test_samples_of_another_part_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
