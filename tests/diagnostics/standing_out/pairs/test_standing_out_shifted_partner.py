"""Checks the sentence about contrastive losses that pair rows of different samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

TABLE = """\
import torch.nn.functional as F

def nt_xent(z, temperature=0.2):
    z = F.normalize(z, dim=1)
    n = len(z) // 2
    table = z @ z.t() / temperature
    table = table.masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
    partner = (torch.arange(2 * n) + n) % (2 * n)
    return F.cross_entropy(table, partner)  #!

net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    x = torch.randn(10, 6)
    views = torch.stack([x + 0.1 * torch.randn(10, 6), x * torch.rand(10, 1)], dim=1)
    loss = nt_xent(net(views.flatten(0, 1)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PARTNER = "(torch.arange(2 * n) + n) % (2 * n)"
STACKED = "torch.stack([x + 0.1 * torch.randn(10, 6), x * torch.rand(10, 1)], dim=1)"
DIAGONAL = TABLE.replace("F.cross_entropy(table, partner)", "table.logsumexp(1).mean() - torch.diag(table, n).mean()")
WRONG = {
    "a sum and a remainder": TABLE,
    "a roll of the half": TABLE.replace("n = len(z) // 2", "m = len(z)").replace(
        PARTNER, "torch.arange(m).roll(m // 2)").replace("2 * n", "m"),
    "two parts": TABLE.replace(PARTNER, "torch.cat([torch.arange(n, 2 * n), torch.arange(n)])").replace(
        "z @ z.t()", "torch.mm(z, z.T)"),
    "a diagonal of copies": DIAGONAL.replace("views.flatten(0, 1)", "x.repeat_interleave(2, 0) + torch.randn(20, 6)"),
}  # fmt: skip
RIGHT = {
    "one view after the other": TABLE.replace("dim=1)\n    loss", "dim=0)\n    loss"),
    "turned before": TABLE.replace("views.flatten", "views.transpose(0, 1).flatten"),
    "turned after": TABLE.replace(
        "net(views.flatten(0, 1))", "net(views.flatten(0, 1)).view(10, 2, 4).transpose(0, 1).reshape(20, 4)"),
    "the neighbour": TABLE.replace(PARTNER, "torch.arange(2 * n) ^ 1"),
    "the next row": TABLE.replace(PARTNER, "torch.arange(2 * n).roll(1)"),
    "copies one after the other": DIAGONAL.replace("views.flatten(0, 1)", "x.repeat(2, 1) + torch.randn(20, 6)"),
    "rows of their own order": TABLE.replace("net(views.flatten(0, 1))", (
        "net(views.flatten(0, 1))[torch.cat([torch.arange(0, 20, 2), torch.arange(1, 20, 2)])]")),
    "frames of clips in two views": TABLE.replace(STACKED, (
        "x.view(5, 2, 6)\n    views = torch.cat([views, views + torch.randn(5, 2, 6)])")),
    "views one after the other, twice": DIAGONAL.replace("views.flatten(0, 1)", (
        "torch.cat([x, x * torch.rand(10, 1)]).repeat_interleave(2, dim=0)")),
    "samples that are taken twice": TABLE.replace(
        "torch.randn(10, 6)\n", "torch.randn(5, 6)[torch.arange(10) % 5]\n", 1),
}  # fmt: skip
WORDS = "no pair is of one sample"


@pytest.mark.parametrize("name", WRONG)
def test_pairs_of_different_samples_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "pairs each of 20 rows with the one 10 rows away" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_pairs_of_one_sample_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
