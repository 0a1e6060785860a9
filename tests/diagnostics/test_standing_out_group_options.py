"""Checks the sentence about an option of a parameter group that no optimizer knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.Adam([
    {"params": net[0].parameters(), "learning_rate": 1e-5},  #!
    {"params": net[2].parameters()},
], lr=0.01)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
RIGHT = {
    "an option that it knows": BODY.replace("learning_rate", "lr"),
    "a name": BODY.replace('"learning_rate": 1e-5', '"name": "first"'),
    "read by a line": BODY + "print(opt.param_groups[0]['learning_rate'], end='')\n",
    "of a dict that is no group": BODY.replace(', "learning_rate": 1e-5', "")
    + 'info = {"params": 5, "learning_rate": 1e-5}\n',
    "of another dict": BODY.replace(', "learning_rate": 1e-5', "") + 'options = {"learning_rate": 1e-5}\n',
}
WORDS = "is no option of an optimizer"


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        BODY.replace("opt = torch.optim.Adam([", "groups = [").replace("], lr=0.01)", (
            "]\nopt = torch.optim.Adam(groups, lr=0.01)")),
        BODY.replace(', "learning_rate": 1e-5},  #!', "},").replace("for _", (
            'opt.add_param_group({"params": [nn.Parameter(torch.ones(1))], "learning_rate": 0.1})  #!\nfor _')),
    ],
    ids=["in the call", "in a list", "added later"],
)  # fmt: skip
def test_an_unknown_option_is_named(tmp_path: Path, body: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert found.text.startswith('`"learning_rate"` is no option')
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_other_options_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
