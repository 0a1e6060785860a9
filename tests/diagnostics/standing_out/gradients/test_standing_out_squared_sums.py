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
    "detached": FISHER.replace(SQUARE, "weight[n] += p.grad.detach() ** 2 / 6"),
    "data": FISHER.replace(SQUARE, "weight[n].data += p.grad.data ** 2 / 6"),
    "an assignment": FISHER.replace(SQUARE, "weight[n] = weight[n] + (p.grad.clone() / 6) ** 2"),
    "a variable": FISHER.replace(SQUARE, "g = p.grad.flatten(); s = g * g; weight[n].view(-1).add_(s, alpha=1 / 6)"),
    "a product in place": FISHER.replace(SQUARE, "weight[n].addcmul_(p.grad, p.grad, value=1 / 6)"),
    "times a probability": FISHER.replace(SQUARE, "weight[n] += torch.tensor(0.5) * p.grad.detach() ** 2"),
    "a list": FISHER.replace("torch.zeros_like(p) for", "[] for").replace(SQUARE, "weight[n].append(p.grad ** 2)")
    + "weight = {n: torch.stack(each).mean(0) for n, each in weight.items()}\n",
    "one vector": FISHER.replace(
        "    for n, p in net.named_parameters():\n        " + SQUARE,
        "    g = torch.cat([p.grad.flatten() for p in net.parameters()])\n    total = total + g.square()",
    ).replace("weight =", "total = torch.zeros(4)\nweight ="),
}
RIGHT = {
    "cleared": FISHER.replace("    net(x).square()", "    net.zero_grad()\n    net(x).square()"),
    "squared at the end": FISHER.replace("    for n, p in net", "for n, p in net").replace(
        "    weight[n] +=", "weight[n] +="),
    "cleared in a list": FISHER.replace("    net(x).square()", "    net.zero_grad()\n    net(x).square()").replace(
        "torch.zeros_like(p) for", "[] for").replace(SQUARE, "weight[n].append(p.grad.detach() ** 2)")
    + "weight = {n: torch.stack(each).mean(0) for n, each in weight.items()}\n",
    "the difference": FISHER.replace("weight =", "last = {n: 0 for n, _ in net.named_parameters()}\nweight =").replace(
        SQUARE, "weight[n] += (p.grad.detach() - last[n]) ** 2; last[n] = p.grad.clone()"),
    "squares of several": FISHER.replace("randn(6, 3):", "randn(6, 3):\n    net.zero_grad()").replace(
        "        weight[n] +=", "        weight[n] += p.grad.detach() ** 2\n        weight[n] +="),
    "a sum of its own": FISHER.replace(SQUARE, "weight[n].zero_(); weight[n] += p.grad.detach() ** 2"),
    "a mean so far": FISHER.replace("for x in torch.randn(6, 3)", "for k, x in enumerate(torch.randn(6, 3))").replace(
        SQUARE, "weight[n] += (p.grad / (k + 1)) ** 2"),
    "an array": FISHER.replace(SQUARE, "weight[n] += p.grad ** 2; g = p.grad.detach().numpy(); g[:] = 0"),
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
