"""Checks the sentence about lines that freeze parameters for a while, and that nothing unfreezes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)

def sample():
    x = torch.randn(8, 4)
    for p in body.parameters():
        p.requires_grad_(False)  #!
    x.requires_grad_()
    slope = torch.autograd.grad(head(body(x)).sum(), x)[0]
    x = (x + slope).detach()
    return x

"""
TRAIN = """\
for step in range(9):
    x = sample() if step > 2 else torch.randn(8, 4)
    opt.zero_grad()
    head(body(x)).square().mean().backward()
    opt.step()
"""
FREEZE = "    for p in body.parameters():\n        p.requires_grad_(False)  #!\n"
BACK = "    for p in body.parameters():\n        p.requires_grad_(True)\n    return x\n"
WRONG = {
    "a sampler": NET + TRAIN,
    "a module": NET.replace(FREEZE, "    body.requires_grad_(False)  #!\n") + TRAIN,
}
RIGHT = {
    "unfrozen": NET.replace("    return x\n", BACK) + TRAIN,
    "a schedule": NET.replace(FREEZE, "") + TRAIN.replace("    opt.zero_grad()", (
        "    if step > 2:\n        body.requires_grad_(False)\n    opt.zero_grad()")),
    "frozen from the start": NET + "body.requires_grad_(False)\n" + TRAIN,
    "a function that only freezes": NET.replace(FREEZE, "") + "def freeze():\n    body.requires_grad_(False)\n\n"
    + TRAIN.replace("    opt.zero_grad()", "    freeze() if step > 2 else None\n    opt.zero_grad()"),
}  # fmt: skip
WORDS = "each time that its function runs"


@pytest.mark.parametrize("name", WRONG)
def test_parameters_that_stay_frozen_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_parameters_that_are_frozen_on_purpose_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
