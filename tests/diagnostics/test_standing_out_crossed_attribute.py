"""Checks the sentence about attributes that have been overwritten for other data before they are used."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Norm(nn.Module):
    def forward(self, x):
        self.scale = x.std(1, keepdim=True).detach()
        return x / self.scale

    def inverse(self, z):
        return z * self.scale  #!

norm, net = Norm(), nn.Linear(4, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    past, future = torch.randn(8, 4), torch.randn(8, 4)
    z = net(norm(past))
    with torch.no_grad():
        wanted = norm(future)
    loss = (z - wanted).square().mean() + (norm.inverse(z) - future).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "without a graph": NET,
    "with a graph": NET.replace("    with torch.no_grad():\n    ", ""),
}
RIGHT = {
    "in order": NET.replace("    z = net(norm(past))\n", "").replace(
        "    loss =", "    z = net(norm(past))\n    loss ="),
    "at once": NET.replace("    with torch.no_grad", "    out = norm.inverse(z)\n    with torch.no_grad").replace(
        "norm.inverse(z)", "out").replace("out = out", "out = norm.inverse(z)"),
    "once only": NET.replace("wanted = norm(future)", "wanted = norm(future) if _ == 1 else future"),
    "two objects": NET.replace("norm, net = Norm()", "norm, more, net = Norm(), Norm()").replace(
        "wanted = norm(future)", "wanted = more(future)").replace("norm.inverse", "more.inverse"),
    "a comparison": NET.replace("z * self.scale", "z - self.scale").replace("x / self.scale", "x + self.scale"),
    "an average": NET.replace("x.std(1, keepdim=True).detach()", (
        "0.9 * getattr(self, 'scale', torch.ones(8, 1)) + 0.1 * x.std(1, keepdim=True).detach()")),
}  # fmt: skip
WORDS = "of other data"


@pytest.mark.parametrize("name", WRONG)
def test_an_attribute_of_other_data_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.text.startswith("`z * self.scale` uses a `self.scale` of other data: `z` is computed with the value")
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_attributes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
