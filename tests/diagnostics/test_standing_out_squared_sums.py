"""Checks the sentence about squares of gradients that add up from pass to pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

FISHER = """\
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train():
    for _ in range(3):
        loss = net(torch.randn(8, 3)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
train()
opt.zero_grad()
weight = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
for x in torch.randn(6, 3):
    net(x).square().sum().backward()  #!
    for n, p in net.named_parameters():
        weight[n] += p.grad.pow(2) / 6
opt.zero_grad()
train()
"""
SQUARE = "weight[n] += p.grad.pow(2) / 6"
WRONG = {
    "a power": FISHER,
    "an operator": FISHER.replace(SQUARE, "weight[n] += p.grad ** 2"),
    "a method": FISHER.replace(SQUARE, "weight[n].add_(p.grad.square())"),
    "a product": FISHER.replace(SQUARE, "weight[n] += p.grad * p.grad"),
}
RIGHT = {
    "cleared": FISHER.replace("    net(x).square()", "    net.zero_grad()\n    net(x).square()"),
    "squared at the end": FISHER.replace("    for n, p in net", "for n, p in net").replace(
        "    weight[n] +=", "weight[n] +="),
    "not summed": FISHER.replace(SQUARE, "print(p.grad.pow(2).sum().item())"),
}  # fmt: skip
WORDS = "squares the sum of the gradients of several passes"


@pytest.mark.parametrize("name", WRONG)
def test_squares_of_sums_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "5 times" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_squares_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
