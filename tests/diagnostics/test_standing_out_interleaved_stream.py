"""Checks the sentence about texts that a reshape cuts into streams item by item."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
def batchify(ids, n):
    ids = ids[: len(ids) // n * n]
    return ids.view(-1, n)  #!

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layer, self.out = nn.Embedding(9, 8), nn.GRU(8, 8), nn.Linear(8, 9)

    def forward(self, ids):
        return self.out(self.layer(self.embed(ids))[0])

streams = batchify(torch.randint(0, 9, (203,)), 4)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for start in range(0, 30, 10):
    x, y = streams[start : start + 10], streams[start + 1 : start + 11]
    loss = nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "view": NET,
    "reshape": NET.replace("ids.view(-1, n)", "ids.reshape((-1, n)).contiguous()"),
    "dropout after the embedding": NET.replace("self.embed(ids)", "nn.functional.dropout(self.embed(ids), 0.1)"),
}
PLAIN = NET.replace("  #!", "")
RIGHT = {
    "consecutive items": PLAIN.replace("ids.view(-1, n)", "ids.view(n, -1).t()"),
    "consecutive items, copied": PLAIN.replace("ids.view(-1, n)", "ids.view(n, -1).t().contiguous()"),
    "rows are sequences": PLAIN.replace("nn.GRU(8, 8)", "nn.GRU(8, 8, batch_first=True)"),
    "targets of their own": PLAIN.replace("streams[start + 1 : start + 11]", "streams[start : start + 10] % 3"),
}
WORDS = "consecutive items into each row"


@pytest.mark.parametrize("name", WRONG)
def test_streams_of_every_nth_item_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "each of its sequences has every 4th item" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_streams_of_consecutive_items_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
