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
DRAWN = NET.replace("Positions", "Clock").replace("self.positions", "self.clock")
DRAWN = DRAWN.replace("net = Net()", "data, pick = torch.randint(0, 9, (80, 6)), torch.randperm(80)\nnet = Net()")
DRAWN = DRAWN.replace("ids, target = torch.randint(0, 9, (16, 6)),", "ids, target = data[pick[:16]],")
DRAWN = DRAWN.replace('self.register_buffer("table", torch.randn(50, 1, 8))', "self.table = nn.Embedding(50, 8)")
LOOKED_UP = DRAWN.replace("self.table[: x.size(0)]", "self.table(torch.arange(len(x))[:, None])")
EXPANDED = DRAWN.replace("self.table[: x.size(0)]", "self.table(torch.arange(x.size(0)).unsqueeze(1).expand(-1, 6))")
LOADER = "torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), 16, shuffle=True)"
LOADED = LOOKED_UP.replace(
    "for _ in range(3):\n    ids, target = data[pick[:16]],", f"for (ids,) in {LOADER}:\n    target ="
)
LATER = DRAWN.replace("self.table[: x.size(0)]", "self.table(torch.arange(x.shape[0])).unsqueeze(1)")
FLAT = NET.replace("torch.randn(50, 1, 8)", "torch.randn(50, 8)").replace(
    "        return x + self.table[: x.size(0)]  #!",
    ("        n, t, _ = x.shape\n        x += self.table[:n].unsqueeze(1)  #!\n        return x"),
)
WRITTEN = (
    NET.replace("        self.layer =", "        self.qkv = nn.Linear(8, 24)\n        self.layer =")
    .replace(
        "self.head(self.layer(self.positions(self.embed(ids)))",
        ("self.head(self.attend(self.positions(self.embed(ids)))"),
    )
    .replace(
        "net = Net()",
        """\
    def attend(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return ((q @ k.mT / 2).softmax(-1) @ v).transpose(1, 2).reshape(b, t, d)

net = Net()""",
    )
)
FUSED = WRITTEN.replace("(q @ k.mT / 2).softmax(-1) @ v", "nn.functional.scaled_dot_product_attention(q, k, v)")
CONVOLVED = NET.replace("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)", "nn.Conv1d(8, 8, 3)").replace(
    "(self.embed(ids))).mean(1)", "(self.embed(ids)).transpose(1, 2)).mean(2)"
)
SINES = LOOKED_UP.replace(
    "self.table(torch.arange(len(x))[:, None])",
    ("torch.sin(torch.arange(len(x))[:, None] / torch.arange(1, 9))[:, None]"),
)
TOKEN = (
    LOOKED_UP.replace("self.layer(", "self.layer(torch.cat([torch.zeros(16, 1, 8), ")
    .replace(".mean(1)", "[:, 0]")
    .replace("self.clock(self.embed(ids))", "self.clock(self.embed(ids))], 1)")
)
WRONG = {
    "a buffer": NET,
    "a token before the first": TOKEN,
    "an embedding of the places": LOOKED_UP,
    "an embedding of places for all times": EXPANDED,
    "an embedding, then a dimension": LATER,
    "a loader that shuffles": LOADED,
    "a table with two dimensions": FLAT,
    "attention that is written out": WRITTEN,
    "the function of attention": FUSED,
    "a convolution along time": CONVOLVED,
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
    "positions of players": PLAIN.replace("table", "position_of_player"),
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
    "an embedding of samples that stay": LOOKED_UP.replace("  #!", "").replace("data[pick[:16]]", "data[:16]"),
    "places in time": LOOKED_UP.replace("  #!", "").replace("(len(x))[:, None]", "(x.size(1))"),
    "places of a fixed set of sensors": PLAIN.replace('self.register_buffer("table", torch.randn(50, 1, 8))', (
        "self.table = nn.Embedding(16, 8)")).replace(
        "self.table[: x.size(0)]", "self.table(torch.arange(len(x)))[:, None]"),
    "attention that is written out, time first": WRITTEN.replace("  #!", "").replace(
        "net(ids)", "net(ids.t())").replace(
        ".permute(2, 0, 3, 1, 4)", ".permute(2, 1, 3, 0, 4)").replace(
        "v).transpose(1, 2)", "v).permute(2, 0, 1, 3)").replace("mean(1)", "mean(0)"),
    "sines of a time of each sample": SINES.replace("  #!", "").replace(
        "torch.arange(len(x))[", "torch.randperm(len(x))["),
    "drawn rows, time first": LOOKED_UP.replace("  #!", "").replace(", batch_first=True", "").replace(
        "net(ids)", "net(ids.t())").replace("mean(1)", "mean(0)"),
    "documents, a row for each of their sentences": PLAIN.replace(
        "for _ in range(3):", "for n in (12, 14, 15, 16, 18):").replace("(16, 6)", "(n, 6)").replace("(16,)", "(n,)"),
    "rows that are drawn and ranked": LOOKED_UP.replace("  #!", "").replace(
        "data[pick[:16]]", "data[pick[:16][torch.rand(80)[pick[:16]].topk(16).indices]]"),
    "rows that another library has sorted": LOOKED_UP.replace("  #!", "").replace(
        "data[pick[:16]]", "data[pick[:16][pick[:16].numpy().argsort()]]"),
    "turned for the sum": PLAIN.replace("self.positions(self.embed(ids))", (
        "self.positions(self.embed(ids).transpose(0, 1)).transpose(0, 1)")),
}  # fmt: skip
WORDS = "as the batch"


@pytest.mark.parametrize("name", WRONG)
def test_positions_along_the_batch_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "a table of shape (50, 1, 8)" in found.text or "a table of shape (50, 8)" in found.text
    assert "to each of the 16 rows of the first dimension" in found.text


def test_sines_of_places_are_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, SINES) if WORDS in each.text)
    assert "one row of a table of shape (16, 1, 8) to each of the 16 rows" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_positions_along_time_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
