"""Checks the sentence about lines that set `requires_grad` of an alias of a parameter."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "sets the flag of an alias"
NETS = "body, head = nn.Linear(4, 4), nn.Linear(4, 1)\nevery = [*body.parameters(), *head.parameters()]\n"
TRAIN = """
opt = torch.optim.SGD(every, lr=0.1)
for step in range(3):
    opt.zero_grad()
    head(body(torch.randn(8, 4)).tanh()).square().mean().backward()
    opt.step()
"""

WRONG = {
    "of data": (
        NETS + "for p in body.parameters():\n    p.data.requires_grad = False  #!\n" + TRAIN,
        "sets the flag of an alias: `body.weight` and `body.bias` still require grad, and steps use the gradients",
    ),
    "of a detached weight": (
        NETS + "body.weight.detach().requires_grad_(False)  #!\n" + TRAIN,
        "sets the flag of an alias: `body.weight` still requires grad, and steps use the gradient",
    ),
    "in a function": (
        NETS + "def freeze(module):\n    for _, p in module.named_parameters():\n"
        "        p.data.requires_grad_(False)  #!\nfreeze(body)\n" + TRAIN,
        "`body.weight` and `body.bias` still require grad",
    ),
    "unfrozen in vain": (
        NETS + "body.requires_grad_(False)\nfor p in body.parameters():\n    p.data.requires_grad = True  #!\n" + TRAIN,
        "`body.weight` and `body.bias` still do not require grad, and get no gradient",
    ),
}  # fmt: skip
RIGHT = {
    "the parameter": NETS + "for p in body.parameters():\n    p.requires_grad = False\n" + TRAIN,
    "the module": NETS + "body.requires_grad_(False)\n" + TRAIN,
    "an alias that is used": NETS + "w = body.weight.detach().requires_grad_()\n(w * 2).sum().backward()\n" + TRAIN,
    "data of a parameter that is frozen too": NETS + "for p in body.parameters():\n    p.data.requires_grad = False\n"
    "    p.requires_grad = False\n" + TRAIN,
    "a copy": NETS + "start = body.weight.detach().clone()\nstart.requires_grad = False\n" + TRAIN,
    "data of what no optimizer steps": NETS + "head.weight.data.requires_grad = False\n"
    + TRAIN.replace("every", "body.parameters()"),
    "unfrozen later": NETS + "body.requires_grad_(False)\nbody.requires_grad_(True)\n" + TRAIN,
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_flags_of_aliases(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(body)]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_flags(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
