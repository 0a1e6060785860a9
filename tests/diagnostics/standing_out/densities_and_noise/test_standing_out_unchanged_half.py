"""Checks the sentence about columns that no layer of a flow changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
class Coupling(nn.Module):
    def __init__(self, turned):
        super().__init__()
        self.turned, self.net = turned, nn.Linear(2, 4)
    def forward(self, x):
        {0}
        if self.turned:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        b = b * s.tanh().exp() + t
        return torch.cat([b, a] if self.turned else [a, b], 1), s.tanh().sum(1)
layers = nn.ModuleList([Coupling({1}) for k in range(4)])
opt = torch.optim.Adam(layers.parameters())
order = torch.randperm(4)
for _ in range(3):
    x, total = torch.randn(16, 4), 0
    for k, layer in enumerate(layers):
        x, det = layer(x)
        {2}
        total = total + det
    loss = ({3} - total).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CHUNK, BASE = "a, b = x.chunk(2, dim=1)", "0.5 * x.square().sum(1)"
WRONG = {
    "chunk": SCRIPT.format(CHUNK + "  #!", "False", "pass", BASE),
    "slices": SCRIPT.format("a = x[:, :2]  #!\n        b = x[:, 2:]", "False", "pass", BASE),
    "always turned": SCRIPT.format("a, b = x.split(2, 1)  #!", "True", "pass", BASE),
    "a distribution": SCRIPT.format(
        CHUNK + "  #!", "False", "pass", "-torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1)"
    ),
    "turned twice": SCRIPT.format(CHUNK + "  #!", "False", "x = x.flip(1).flip(1)", BASE),
}
RIGHT = {
    "in turn": SCRIPT.format(CHUNK, "k % 2 == 1", "pass", BASE),
    "flip": SCRIPT.format(CHUNK, "False", "x = x.flip(1)", BASE),
    "a permutation": SCRIPT.format(CHUNK, "False", "x = x[:, order] if k % 2 else x", BASE),
    "one layer": SCRIPT.format(CHUNK, "False", "pass", BASE).replace("range(4)", "range(1)"),
    "a system with a constant": """\
control = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
opt = torch.optim.Adam(control.parameters())
for _ in range(3):
    state = torch.randn(32, 3)
    for _ in range(5):
        state = torch.cat([state[:, :2] + 0.1 * control(state), state[:, 2:]], 1)
    loss = state.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "features of unit length": SCRIPT.format(CHUNK, "False", "pass", BASE)
    .replace("loss = ", "x = x / x.norm(dim=1, keepdim=True); loss = ")
    .replace(BASE, "(x @ x.t()).exp().sum(1)"),
    "a density of a part": SCRIPT.format(
        CHUNK, "False", "pass", "-torch.distributions.Normal(0.0, 1.0).log_prob(x)[:, 2:].sum(1)"
    ),
    "squares of a part": SCRIPT.format(CHUNK, "False", "pass", "0.5 * (x.square() * (torch.arange(4) > 1)).sum(1)"),
    "a condition by its name": SCRIPT.format("cond, b = x.chunk(2, dim=1); a = cond", "False", "pass", BASE),
    "inputs and targets": SCRIPT.format("x, y = x.chunk(2, dim=1); a, b = x, y", "False", "pass", BASE),
    "a context": SCRIPT.format(CHUNK, "False", "pass", "0.5 * x[:, 2:].square().sum(1)"),
}
WORDS = "columns of the data at each of"


@pytest.mark.parametrize("name", WRONG)
def test_columns_that_no_layer_changes_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_flows_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
