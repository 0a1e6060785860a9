"""Checks the sentence about parameters that were tied until another one was assigned."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "were one parameter"
MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.tie()
    def tie(self):
        self.head.weight = self.embed.weight
    def forward(self, x):
        return self.head(self.embed(x).tanh())
"""
TRAIN = """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    opt.zero_grad()
    nn.functional.cross_entropy(model(torch.randint(6, (8,))), torch.randint(6, (8,))).backward()
    opt.step()
"""

WRONG = {
    "a reset": (
        MODEL + "    def reset(self):\n        self.head.weight = nn.Parameter(0.1 * torch.randn(6, 4))  #!\n"
        "model = Model()\nmodel.reset()\n" + TRAIN,
        "`model.head.weight` and `model.embed.weight` were one parameter, and are two after `self.head.weight = ...`",
    ),
    "loaded vectors": (
        MODEL + "model = Model()\nmodel.embed.weight = nn.Parameter(torch.randn(6, 4))  #!\n" + TRAIN,
        "`model.embed.weight` and `model.head.weight` were one parameter",
    ),
    "a registered parameter": (
        MODEL + "model = Model()\nmodel.embed.register_parameter('weight', nn.Parameter(torch.randn(6, 4)))  #!\n"
        + TRAIN,
        "`model.embed.weight` and `model.head.weight` were one parameter",
    ),
    "a registered tie": (
        MODEL.replace("weight = self.embed.weight", "register_parameter('weight', self.embed.weight)")
        + "model = Model()\nmodel.embed.weight = nn.Parameter(torch.randn(6, 4))  #!\n" + TRAIN,
        "`model.embed.weight` and `model.head.weight` were one parameter",
    ),
    "a new module": (
        MODEL + "model = Model()\nmodel.embed = nn.Embedding.from_pretrained(torch.randn(6, 4), freeze=False)  #!\n"
        + TRAIN,
        "`model.embed.weight` and `model.head.weight` were one parameter",
    ),
    "in the middle of training": (
        MODEL + "model = Model()\n" + TRAIN
        + "setattr(model.head, 'weight', nn.Parameter(torch.zeros(6, 4)))  #!\n" + TRAIN,
        "`model.head.weight` and `model.embed.weight` were one parameter",
    ),
    "by one who gives the values": (
        MODEL + "model = Model()\n"
        "model.load_state_dict({k: torch.randn(6, 4) for k in model.state_dict()}, assign=True)  #!\n" + TRAIN,
        WHAT,
    ),
}  # fmt: skip
RIGHT = {
    "registered, and tied again": MODEL + "model = Model()\n"
    "model.embed.register_parameter('weight', nn.Parameter(torch.randn(6, 4)))\nmodel.tie()\n" + TRAIN,
    "parameters of its own": MODEL.replace("        self.tie()\n", "        self.register_parameter('scale', None)\n"
    "        self.head.register_parameter('weight', nn.Parameter(torch.randn(6, 4)))\n") + "model = Model()\n" + TRAIN,
    "a parametrization": MODEL + "model = Model()\nnn.utils.parametrizations.weight_norm(model.head)\n" + TRAIN,
    "tied": MODEL + "model = Model()\n" + TRAIN,
    "tied again": MODEL + "model = Model()\nmodel.embed.weight = nn.Parameter(torch.randn(6, 4))\nmodel.tie()\n"
    + TRAIN,
    "tied after a reset": MODEL + "    def reset(self):\n        self.embed = nn.Embedding(6, 4)\n"
    "        self.head = nn.Linear(4, 6, bias=False)\n        self.tie()\nmodel = Model()\nmodel.reset()\n" + TRAIN,
    "a copy": MODEL + "model = Model()\n"
    "model.head.weight = nn.Parameter(model.embed.weight.detach().clone())\n" + TRAIN,
    "another head": MODEL + "model = Model()\nmodel.head = nn.Linear(4, 9)\n" + TRAIN,
    "never tied": MODEL.replace("        self.tie()\n", "")
    + "model = Model()\nmodel.head.weight = nn.Parameter(torch.zeros(6, 4))\n" + TRAIN,
    "one that is frozen": MODEL + "model = Model()\n"
    "model.head.weight = nn.Parameter(torch.randn(6, 4), requires_grad=False)\n" + TRAIN,
    "two models": MODEL + "for _ in range(2):\n    model = Model()\n" + TRAIN.replace("\n", "\n    "),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_a_lost_tie(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(body)]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_assignments(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
