"""Checks the sentence about guidance whose id for "no class" training never gives, or gives to a class as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.kind, self.out = nn.Embedding(classes, 8), nn.Linear(8 + 2, 2)
    def forward(self, x, y):
        return self.out(torch.cat([x, self.kind(y)], -1))
K, NULL = 3, {0}
net = Net({1})
opt = torch.optim.Adam(net.parameters())
x, labels = torch.randn(60, 2), torch.randint(0, K, (60,))
for idx in torch.randperm(60).split(20):
    y = labels[idx]
    {2}
    loss = (net(torch.randn(20, 2), y) - x[idx]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
@torch.no_grad()
def sample(y, weight=2.0):
    z = torch.randn(len(y), 2)
    for _ in range(3):
        none = torch.full_like(y, NULL)  #!
        {3}
        z = z - 0.1 * both
    return z
sample(torch.arange(3))
"""
TWO = "with_y, without = net(z, y), net(z, none); both = without + weight * (with_y - without)"
ONE = "a, b = net(torch.cat([z, z]), torch.cat([y, none])).chunk(2); both = (1 + weight) * a - weight * b"
DROP = "y = torch.where(torch.rand(20) < 0.5, torch.full_like(y, NULL), y)"
WRONG = {
    "never given": SCRIPT.format(3, 4, "pass", TWO),
    "drawn by hand": SCRIPT.format(3, 4, "pass", TWO).replace("opt =", "nn.init.normal_(net.kind.weight)\nopt ="),
    "both at once": SCRIPT.format(3, 4, "pass", ONE),
    "an id of a class": SCRIPT.format(0, 3, DROP, TWO),
    "masked": SCRIPT.format(0, 3, "y = y.masked_fill(torch.rand(20) < 0.5, NULL)", ONE),
}
RIGHT = {
    "dropped": SCRIPT.format(3, 4, DROP, TWO),
    "dropped, both at once": SCRIPT.format(3, 4, DROP, ONE),
    "classes from 1": SCRIPT.format(0, 4, DROP, TWO).replace("torch.randint(0, K", "torch.randint(1, K + 1"),
    "no guidance": SCRIPT.format(3, 4, "pass", "both = net(z, none) + z"),
    "away from a class": SCRIPT.format(3, 4, DROP, TWO).replace("full_like(y, NULL)  #!", "full_like(y, 1)").replace(
        "y = labels[idx]", "y = torch.randint(0, K, (20,))"),
    "a row of zeros": SCRIPT.format(3, 4, "pass", TWO).replace("Embedding(classes, 8", (
        "Embedding(classes, 8, padding_idx=NULL")),
    "a row of zeros, written": SCRIPT.format(3, 4, "pass", TWO).replace("opt =", (
        "with torch.no_grad():\n    net.kind.weight[NULL].zero_()\nopt =")),
    "the mean of the classes": SCRIPT.format(3, 4, "pass", TWO).replace("sample(torch", (
        "with torch.no_grad():\n    net.kind.weight[NULL] = net.kind.weight[:NULL].mean(0)\nsample(torch")),
    "the effect of a kind": SCRIPT.format(0, 3, DROP, "both = net(z, y) - net(z, none)").replace("  #!", ""),
    "a control group of the data": SCRIPT.format(0, 3, "pass", TWO).replace("\nfor idx", (
        "\nlabels = labels.masked_fill(torch.rand(60) < 0.3, 0)\nfor idx")).replace("  #!", ""),
    "another difference": SCRIPT.format(3, 4, "pass", "both = z - net(z, none)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_guidance_by_an_untrained_id_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "to all rows" in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_ids_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "to all rows" in each.text] == []
