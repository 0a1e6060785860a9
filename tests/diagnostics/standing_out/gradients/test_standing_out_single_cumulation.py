"""Checks the sentence about cumulative operations along one element."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

COX = """\
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    risk, event = net(torch.randn(16, 3)), torch.randint(0, 2, (16, 1)).float()
    known = torch.logcumsumexp(risk, dim=-1)  #!
    loss = ((known - risk) * event).sum() / 16 + 1e-3 * risk.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a keyword": COX,
    "a method": COX.replace("torch.logcumsumexp(risk, dim=-1)", "risk.logcumsumexp(1)"),
    "a partial": "from functools import partial\nlse = partial(torch.logcumsumexp, dim=-1)\n"
    + COX.replace("torch.logcumsumexp(risk, dim=-1)", "lse(risk)"),
    "a dict of functions": "FNS = {'lse': torch.logcumsumexp}\n"
    + COX.replace("torch.logcumsumexp(risk, dim=-1)", "FNS['lse'](risk, axis=-1)"),
    "options": "OPTIONS = dict(dim=1)\n" + COX.replace("dim=-1", "**OPTIONS"),
    "three calls": COX.replace("torch.logcumsumexp(risk, dim=-1)", "risk.exp().flip(0).cumsum(-1).flip(0).log()"),
}
RIGHT = {
    "a number of gaps that is one": COX.replace("torch.logcumsumexp(risk, dim=-1)", "risk.exp().cumsum(1)"),
    "a partial along the batch": "from functools import partial\nlse = partial(torch.logcumsumexp, dim=0)\n"
    + COX.replace("torch.logcumsumexp(risk, dim=-1)", "lse(risk)"),
    "three calls along the batch": COX.replace("torch.logcumsumexp(risk, dim=-1)", "risk.exp().cumsum(0).log()"),
    "as many thresholds as a setting says": "classes = 2\n"
    + COX.replace("nn.Linear(3, 1)", "nn.Linear(3, classes - 1)"),
    "along the batch": COX.replace("dim=-1", "dim=0"),
    "a row": COX.replace("(risk, dim=-1)", "(risk[:, 0], dim=-1)[:, None]"),
    "one element at times": COX.replace("(16, 3)), torch.randint(0, 2, (16, 1))", (
        "(16, 3))[None, :, 0][:, : 1 + _], torch.randint(0, 2, (1, 1 + _))")),
    "a batch of one": COX.replace("(16, 3)", "(1, 3)"),
}  # fmt: skip
WORDS = "along a dimension of one element"


@pytest.mark.parametrize("name", WRONG)
def test_a_cumulation_of_one_element_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "in each of 3 runs, of the shape (16, 1): it changes no value" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_cumulation_of_several_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
