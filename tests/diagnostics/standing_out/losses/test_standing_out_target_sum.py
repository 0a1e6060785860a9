"""Checks the sentence about targets of a cross entropy that do not add up to 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
import torch.nn.functional as F
import random
net, K, eps = nn.Linear(6, 4), 4, 0.1
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(32, 6), torch.randint(0, 4, (32,))
def soft(y, smoothing=0.2):
    target = torch.full((len(y), K), smoothing / {1})
    target[torch.arange(len(y)), y] = 1 - smoothing  #?
    return target
for part in torch.randperm(32).split(8):
    hot, order, lam = F.one_hot(y[part], K).float(), torch.randperm(8), torch.rand(8, 1)
    weight, share = torch.rand(8, 1), random.random()
    target = {0}
    loss = -(target * net(x[part]).log_softmax(1)).sum(1).mean() + F.cross_entropy(net(x[part]), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "smoothing": SCRIPT.format("hot * (1 - eps) + eps  #!", 3),
    "scatter": SCRIPT.format("torch.full((8, K), eps).scatter_(1, y[part][:, None], 1 - eps)  #!", 3),
    "an index": SCRIPT.format("soft(y[part])", 1).replace("#?", "#!"),
    "mixed": SCRIPT.format("lam * hot + hot[order]  #!", 3),
    "mixed by a number": SCRIPT.format("hot + (1 - share) * hot.flip(0)  #!", 3),
    "weighted": SCRIPT.format("weight * (0.9 * hot + 0.1)  #!", 3),
}
RIGHT = {
    "smoothing": SCRIPT.format("hot * (1 - eps) + eps / K", 3),
    "a classes' share": SCRIPT.format("(1 - eps) * hot + eps / hot.size(1)", 3),
    "scatter": SCRIPT.format("torch.full((8, K), eps / (K - 1)).scatter_(1, y[part][:, None], 1 - eps)", 3),
    "an index": SCRIPT.format("soft(y[part])", 3),
    "mixed": SCRIPT.format("lam * hot + (1 - lam) * hot[order]", 3),
    "mixed by a number": SCRIPT.format("share * hot + (1 - share) * hot.flip(0)", 3),
    "another weight": SCRIPT.format("lam * hot + weight * hot[order]", 3),
    "weighted": SCRIPT.format("weight * (0.9 * hot + 0.1 / K)", 3),
    "a weight of both": SCRIPT.format("weight * 0.9 * hot + weight * 0.1 / K", 3),
    "lerp": SCRIPT.format("torch.lerp(hot, hot[order], lam)", 3),
    "half of two": SCRIPT.format("(hot + hot[order]) / 2", 3),
    "half of two, a product": SCRIPT.format("(0.9 * hot + 0.4 + hot[order]) * 0.2857142857", 3),
    "divided by its sum": SCRIPT.format("hot + 0.1; target = target / target.sum(-1, keepdim=True)", 3),
    "without a class": SCRIPT.format(
        "torch.full((8, K), eps).scatter_(1, y[part][:, None], 0.8) * (torch.arange(K) != 0).float()", 3
    ),
    "added by scatter": SCRIPT.format("torch.full((8, K), 0.2 / K).scatter(1, y[part][:, None], 0.8, reduce='add')", 3),
    "a weight in zeros": SCRIPT.format("torch.zeros(8, K).scatter(1, y[part][:, None], 0.5)", 3),
    "an even share beside a class": SCRIPT.format("hot + eps / K", 3),
    "two weights": SCRIPT.format("torch.full((8, K), eps / K).scatter_(1, y[part][:, None], 0.5)", 3),
    "two losses": SCRIPT.format("hot + share * x[part][:, :4].softmax(-1)", 3),
    "with a teacher": SCRIPT.format("0.3 * hot + 0.7 * x[part][:, :4].softmax(-1)", 3),
}


@pytest.mark.parametrize("name", WRONG)
def test_targets_of_another_sum_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "rows add up to" in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_targets_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "rows add up to" in each.text] == []
