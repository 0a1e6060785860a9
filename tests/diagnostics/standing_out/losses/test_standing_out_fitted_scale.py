"""Checks the sentence about a temperature that is fitted on the rows that the model was trained on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split
x, y = torch.randn(60, 5), torch.randint(0, 3, (60,))
test_x, test_y = torch.randn(20, 5), torch.randint(0, 3, (20,))
rows = torch.randperm(60)
fit_rows, held_rows = rows[:40], rows[40:]
train_x, train_y, held_x, held_y = x[:40], y[:40], x[40:], y[40:]
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
{train}
    loss = F.cross_entropy(net(a), b)
    opt.zero_grad()
    loss.backward()
    opt.step()
def collect(loader):
    found = [(net(a), b) for a, b in loader]
    return torch.cat([a for a, _ in found]), torch.cat([b for _, b in found])
with torch.no_grad():
    logits, goal = {scores}
scale = nn.Parameter(torch.ones(1))
second = torch.optim.SGD([scale], lr=0.01)
for _ in range(3):
    fitted = F.cross_entropy(logits / scale, goal)  #!
    second.zero_grad()
    fitted.backward()
    second.step()
with torch.no_grad():
    print(F.cross_entropy(net({test}) / scale, test_y[:len({test})]))
"""
BATCHES = "for idx in torch.randperm(40).split(10):\n    a, b = train_x[idx], train_y[idx]"
SLICES = "for k in range(0, 40, 10):\n    a, b = train_x[k : k + 10], train_y[k : k + 10]"
ROWS = "for idx in fit_rows.split(10):\n    a, b = x[idx], y[idx]"
LOADER = "for a, b in DataLoader(TensorDataset(train_x, train_y), 10, shuffle=True):"
SPLIT = "first, other = random_split(TensorDataset(x, y), [40, 20])\nfor a, b in DataLoader(first, 10):"
WRONG = {
    "batches": SCRIPT.format(train=BATCHES, scores="net(train_x), train_y", test="held_x"),
    "slices": SCRIPT.format(train=SLICES, scores="net(train_x), train_y", test="test_x"),
    "a loader": SCRIPT.format(
        train=LOADER, scores="collect(DataLoader(TensorDataset(train_x, train_y), 10))", test="held_x"
    ),
}
MASK = "is_train = torch.rand(60) < 0.7\nfor _ in range(6):\n    a, b = x[is_train], y[is_train]"
FOLD = "fold = torch.arange(60) % 5\nfor _ in range(6):\n    a, b = x[fold != 0], y[fold != 0]"
WEIGHT = SCRIPT.format(
    train="first = torch.rand(60) < 0.7\nfor _ in range(6):\n    a, b = x, y", scores="net(x), y", test="test_x"
)
RIGHT = {
    "a mask": SCRIPT.format(train=MASK, scores="net(x[~is_train]), y[~is_train]", test="test_x"),
    "a few of the rows": SCRIPT.format(train=ROWS, scores="net(x), y", test="test_x"),
    "a fold": SCRIPT.format(train=FOLD, scores="net(x[fold == 0]), y[fold == 0]", test="test_x"),
    "weights": WEIGHT.replace(
        "F.cross_entropy(net(a), b)", ('(F.cross_entropy(net(a), b, reduction="none") * first).mean()')
    ).replace(
        "F.cross_entropy(logits / scale, goal)",
        '(F.cross_entropy(logits / scale, goal, reduction="none") * ~first).mean()',
    ),
    "held out": SCRIPT.format(train=BATCHES, scores="net(held_x), held_y", test="test_x"),
    "other rows of one tensor": SCRIPT.format(train=ROWS, scores="net(x[held_rows]), y[held_rows]", test="test_x"),
    "a part of one data set": SCRIPT.format(train=SPLIT, scores="collect(DataLoader(other, 10))", test="test_x"),
    "no other rows": SCRIPT.format(train=BATCHES, scores="net(train_x), train_y", test="train_x[:20]"),
    "the step of a weak learner": SCRIPT.replace("logits / scale", "logits * scale").format(
        train=BATCHES, scores="net(train_x), train_y", test="held_x"
    ),
    "training goes on": SCRIPT.format(train=BATCHES, scores="net(train_x), train_y", test="held_x")
    + "for _ in range(3):\n    opt.zero_grad()\n"
    "    F.cross_entropy(net(train_x) / scale.detach(), train_y).backward()\n"
    "    opt.step()\n",
    "scores of another model": SCRIPT.format(train=BATCHES, scores="first(train_x), train_y", test="held_x").replace(
        "opt = ", "first = nn.Linear(5, 3)\nopt = "
    ),
}
WORDS = "on which the model was trained"


@pytest.mark.parametrize("name", WRONG)
def test_a_scale_of_training_rows_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_scales_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
