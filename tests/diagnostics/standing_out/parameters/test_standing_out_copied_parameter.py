"""Checks the sentence about a parameter that begins as a copy of another one of its model."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.out.weight = nn.Parameter(self.embed.weight.detach().clone())  #!

    def forward(self, tokens):
        return self.out(self.embed(tokens))

model = Model()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    tokens = torch.randint(0, 6, (8,))
    loss = nn.functional.cross_entropy(model(tokens), tokens)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
COPY = "nn.Parameter(self.embed.weight.detach().clone())"
MADE = "self.out.weight = nn.Parameter(self.embed.weight.detach().clone())  #!"
OTHERS = {
    "a load": BODY.replace(MADE, "self.out.load_state_dict({'weight': self.embed.weight})  #!"),
    "a deep copy": BODY.replace(MADE, "import copy\n        self.out.weight = copy.deepcopy(self.embed.weight)  #!"),
    "two lines": BODY.replace(MADE, "w = self.embed.weight.clone()\n        self.out.weight = nn.Parameter(w)  #!"),
}
TWIN = BODY.replace(
    "nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)", "nn.Embedding(6, 4), nn.Embedding(6, 4)"
).replace("self.out(self.embed(tokens))", "self.embed(tokens) @ self.out(torch.arange(6)).T")
RIGHT = {
    "experts that begin alike": BODY.replace(MADE, (
        "self.experts = nn.ModuleList(nn.Linear(4, 6, bias=False) for _ in range(2))\n"
        "        for each in self.experts:\n            w = self.out.weight.detach().clone()\n"
        "            each.weight = nn.Parameter(w)")).replace("self.out(self.embed(tokens))", (
        "sum(each(self.embed(tokens)) for each in (self.out, *self.experts))")),
    "two tables that begin alike": TWIN.replace(MADE, "self.out.load_state_dict({'weight': self.embed.weight})"),
    "two heads that begin alike": BODY.replace("nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)", (
        "nn.Linear(4, 6, bias=False), nn.Linear(4, 6, bias=False)")).replace("self.out(self.embed(tokens))", (
        "self.out(x := torch.randn(8, 4)) + self.embed(x).sin()")),
    "a loaded state": BODY.replace(MADE, "self.out.load_state_dict(self.embed.state_dict())"),
    "one parameter": BODY.replace(COPY, "self.embed.weight"),
    "other values": BODY.replace(COPY, "nn.Parameter(2 * self.embed.weight.detach())"),
    "frozen": BODY.replace("opt =", "model.embed.requires_grad_(False)\nopt ="),
    "two models": BODY.replace("model = Model()", "import copy\nmodel = nn.ModuleList([Model(), Model()])[0]")
    .replace(COPY, "nn.Parameter(torch.randn(6, 4))"),
}  # fmt: skip
WORDS = "they are two parameters"


@pytest.mark.parametrize("text", [BODY, BODY.replace(".detach().clone()", ".data.clone()")])
def test_a_copied_parameter_is_named(tmp_path: Path, text: str) -> None:
    (found,) = (each for each in sentences(tmp_path, text) if WORDS in each.text)
    assert found.text.startswith("`model.out.weight` begins as a copy of `model.embed.weight`, by `nn.Parameter(")
    assert found.labels[0].span.line == marked(text)


@pytest.mark.parametrize("name", OTHERS)
def test_other_copies_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, OTHERS[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(OTHERS[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_parameters_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
