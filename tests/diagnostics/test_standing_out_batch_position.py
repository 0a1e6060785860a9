"""Checks the sentence about positions that are added along the batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(50, 1, 8))

    def forward(self, x):
        return x + self.table[: x.size(0)]  #!

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.positions, self.head = nn.Embedding(9, 8), Positions(), nn.Linear(8, 2)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, ids):
        return self.head(self.layer(self.positions(self.embed(ids))).mean(1))

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    ids, target = torch.randint(0, 9, (16, 6)), torch.randint(0, 2, (16,))
    loss = nn.functional.cross_entropy(net(ids), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GRU = NET.replace("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)", "nn.GRU(8, 8, batch_first=True)").replace(
    "self.layer(self.positions(self.embed(ids)))", "self.layer(self.positions(self.embed(ids)))[0]"
)
WRONG = {
    "a buffer": NET,
    "a parameter": NET.replace('self.register_buffer("table", torch.randn(50, 1, 8))', (
        "self.table = nn.Parameter(torch.randn(50, 1, 8))")),
    "by a shape": NET.replace("x.size(0)", "x.shape[0]"),
    "a recurrent layer": GRU,
    "sines in a class of another name": NET.replace("Positions", "Waves").replace(
        '"table", torch.randn(50, 1, 8)', '"table", torch.sin(torch.arange(50)[:, None, None] / torch.rand(8))'),
    "measurements": NET.replace("nn.Embedding(9, 8)", "nn.Linear(3, 8)").replace(
        "torch.randint(0, 9, (16, 6))", "torch.randn(16, 6, 3)"),
}  # fmt: skip
PLAIN = NET.replace("  #!", "")
RIGHT = {
    "time first": PLAIN.replace(", batch_first=True", "").replace("net(ids)", "net(ids.t())").replace(
        "mean(1)", "mean(0)"),
    "a recurrent layer, time first": GRU.replace("  #!", "").replace(", batch_first=True", "").replace(
        "net(ids)", "net(ids.t())").replace("mean(1)", "mean(0)"),
    "along time": PLAIN.replace("self.table[: x.size(0)]", "self.table[: x.size(1)].transpose(0, 1)"),
    "codes of samples": PLAIN.replace("self.table[: x.size(0)]", "self.table[torch.arange(x.size(0))]"),
    "a code for each sample there is": PLAIN.replace("(50, 1, 8)", "(16, 1, 8)"),
    "codes of another name": PLAIN.replace("Positions", "Codes"),
    "a layer along time before": PLAIN.replace("self.layer(", "self.layer(self.first(").replace(
        ".mean(1))", ").mean(1))").replace("        self.layer =", (
        "        self.first = nn.TransformerEncoderLayer(8, 2, 16)\n        self.layer =")),
    "a layer along time after": PLAIN.replace("self.layer(", "self.last(self.layer(").replace(
        ".mean(1))", ")[0].mean(1))").replace("        self.layer =", (
        "        self.last = nn.GRU(8, 8)\n        self.layer =")),
    "places in each row as well": PLAIN.replace("self.embed(ids))", "self.embed(ids) + self.place)").replace(
        "        self.layer =", "        self.place = nn.Parameter(torch.randn(6, 8))\n        self.layer ="),
    "places that are looked up": PLAIN.replace("self.embed(ids))", (
        "self.embed(ids) + self.place(torch.arange(6).expand(16, 6)))")).replace(
        "        self.layer =", "        self.place = nn.Embedding(6, 8)\n        self.layer ="),
    "one target for all rows": PLAIN.replace("(0, 2, (16,))", "(0, 2, (1,))").replace(
        "mean(1))", "mean((0, 1)))[None]"),
    "turned for the sum": PLAIN.replace("self.positions(self.embed(ids))", (
        "self.positions(self.embed(ids).transpose(0, 1)).transpose(0, 1)")),
}  # fmt: skip
WORDS = "as the batch"


@pytest.mark.parametrize("name", WRONG)
def test_positions_along_the_batch_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "a table of shape (50, 1, 8) to each of the 16 rows of the first dimension" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_positions_along_time_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
