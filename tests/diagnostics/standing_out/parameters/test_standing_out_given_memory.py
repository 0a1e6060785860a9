"""Checks the sentence about parameters that are made in the memory of another parameter."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "memory with"
LAYERS = "a, b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)\n"
TRAIN = """
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for step in range(3):
    opt.zero_grad()
    b(a(torch.randn(8, 4)).tanh()).square().mean().backward()
    opt.step()
"""

WRONG = {
    "of data": LAYERS + "b.weight = nn.Parameter(a.weight.data)  #!\n" + TRAIN,
    "of a detached weight": LAYERS + "b.weight = nn.Parameter(a.weight.detach())  #!\n" + TRAIN,
    "of one start": LAYERS + "start = torch.randn(4, 4)\na.weight = nn.Parameter(start)\n"
    "b.weight = nn.Parameter(start)  #!\n" + TRAIN,
    "in a loop": "start = torch.eye(4)\nclass Layer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.weight = nn.Parameter(start)  #!\n    def forward(self, x):\n        return x @ self.weight\n"
    "a, b = Layer(), Layer()\n" + TRAIN,
}  # fmt: skip
RIGHT = {
    "two starts": LAYERS + TRAIN,
    "a copy": LAYERS + "b.weight = nn.Parameter(a.weight.detach().clone())\n" + TRAIN,
    "tied": LAYERS + "b.weight = a.weight\n" + TRAIN.replace(", *b.parameters()", ""),
    "other parts of one memory": LAYERS + "flat = torch.randn(8, 4)\na.weight = nn.Parameter(flat[:4])\n"
    "b.weight = nn.Parameter(flat[4:])\n" + TRAIN,
    "parts of one vector": LAYERS + "nn.utils.vector_to_parameters(torch.randn(32), [a.weight, b.weight])\n" + TRAIN,
    "parts of a vector that is stepped": LAYERS
    + "flat = nn.Parameter(torch.cat([a.weight.detach().flatten(), b.weight.detach().flatten()]))\n"
    "for n, p in enumerate([a.weight, b.weight]): p.data = flat.data[16 * n : 16 * n + 16].view_as(p)\n"
    + TRAIN.replace("[*a.parameters(), *b.parameters()]", "[flat]").replace(
        "    opt.step", "    flat.grad = torch.cat([a.weight.grad.flatten(), b.weight.grad.flatten()])\n    opt.step"),
    "one that no step changes": LAYERS + "b.weight = nn.Parameter(a.weight.data, requires_grad=False)\n"
    + TRAIN.replace(", *b.parameters()", ""),
    "one that is replaced": LAYERS + "old = a.weight\na.weight = nn.Parameter(a.weight.data)\n" + TRAIN,
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_two_parameters_in_one_memory(case: str, tmp_path: Path) -> None:
    found = [each for each in sentences(tmp_path, WRONG[case]) if WHAT in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(WRONG[case])]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_parameters(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
