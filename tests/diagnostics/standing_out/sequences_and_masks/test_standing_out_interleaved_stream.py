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

text = torch.randint(0, 9, (203,))
streams = batchify(text, 4)
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
    "a text that fits": NET.replace("    ids = ids[: len(ids) // n * n]\n", "").replace(
        "torch.randint(0, 9, (203,))", "torch.tensor([int(c) for c in text])").replace(
        "text = torch.", "text = '01234567' * 25\nids = torch.").replace("batchify(text", "batchify(ids"),
    "rows of a known number": NET.replace("ids.view(-1, n)", "ids.view(len(ids) // n, n)"),
    "parts that are stacked": NET.replace("ids.view(-1, n)", "torch.stack(ids.split(n))"),
    "parts that are stacked, the last left out": NET.replace("    ids = ids[: len(ids) // n * n]\n", "").replace(
        "ids.view(-1, n)", "torch.vstack(ids.split(n)[:-1])"),
    "a number of parts": NET.replace("ids.view(-1, n)", "torch.stack(ids.chunk(len(ids) // n))"),
    "windows side by side": NET.replace("ids.view(-1, n)", "ids.unfold(0, n, n)"),
    "two sizes of one dimension": NET.replace("ids.view(-1, n)", "ids.unflatten(0, (-1, n))"),
    "a genome": NET.replace("text", "genome"),
    "dropout after the embedding": NET.replace("self.embed(ids)", "nn.functional.dropout(self.embed(ids), 0.1)"),
}  # fmt: skip
PLAIN = NET.replace("  #!", "")
RIGHT = {
    "consecutive items": PLAIN.replace("ids.view(-1, n)", "ids.view(n, -1).t()"),
    "consecutive items, copied": PLAIN.replace("ids.view(-1, n)", "ids.view(n, -1).t().contiguous()"),
    "long parts beside each other": PLAIN.replace("ids.view(-1, n)", "torch.stack(ids.split(len(ids) // n), 1)"),
    "long parts, turned": PLAIN.replace("ids.view(-1, n)", "torch.stack(ids.chunk(n)).t()"),
    "every start of a window": PLAIN.replace("ids.view(-1, n)", "ids.unfold(0, n, 1)"),
    "parts of a log": PLAIN.replace("ids.view(-1, n)", "torch.stack(ids.split(n))").replace("text", "log"),
    "rows are sequences": PLAIN.replace("nn.GRU(8, 8)", "nn.GRU(8, 8, batch_first=True)"),
    "one stream": PLAIN.replace("batchify(text, 4)", "batchify(text, 1)"),
    "what four machines log in turn": PLAIN.replace("text", "log"),
    "what four machines log, with all of it": PLAIN.replace("    ids = ids[: len(ids) // n * n]\n", "").replace(
        "torch.randint(0, 9, (203,))", "torch.tensor([(t + m) % 9 for t in range(50) for m in range(4)])"),
    "stored with time first": PLAIN.replace("(203,)", "(200,)").replace(
        "batchify(text, 4)", "torch.frombuffer(bytearray(text.view(4, -1).t().numpy().tobytes()), dtype=torch.int64)"
        ".view(-1, 4)"),
    "texts that were stored in turn": PLAIN.replace(
        "torch.randint(0, 9, (203,))", "torch.randint(0, 9, (4, 50)).t().reshape(-1)"),
    "voices that were stored in turn, as a list": PLAIN.replace(
        "torch.randint(0, 9, (203,))", "torch.randint(0, 9, (4, 50)).t().flatten().tolist()").replace(
        "batchify(text, 4)", "torch.tensor(text).view(-1, 4)").replace("text", "melody"),
    "places of codons": PLAIN.replace("streams = batchify(text, 4)", "codons = batchify(text, 3)\nstreams = codons"),
    "words of a record": PLAIN.replace("text", "log").replace(", n)", ", n_words)").replace("// n * n", (
        "// n_words * n_words")),
    "four voices": PLAIN.replace("streams", "voices"),
    "as many columns as voices": PLAIN.replace(", n)", ", n_voices)").replace("// n * n", "// n_voices * n_voices"),
    "voices of a chorale": PLAIN.replace("ids.view(-1, n)", "ids.view(-1, 4)").replace("text", "melody"),
    "targets of their own": PLAIN.replace("streams[start + 1 : start + 11]", "streams[start : start + 10] % 3"),
}  # fmt: skip
NUMBERS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.LSTM(1, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.out(self.layer(x)[0])

record = torch.randn(250).cumsum(0)
past, future = record[:200], record[200:250]
table = past.view(-1, 4, 1)  #!
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for start in range(0, 30, 10):
    x, y = table[start : start + 10], table[start + 1 : start + 11]
    loss = (net(x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    print((net(future[:-1, None, None]).flatten() - future[1:]).abs().mean())
"""
OWN_RANGE = "record = torch.sin(torch.arange(250) / 7)"
UNREAD = NUMBERS.replace("net(future[:-1, None, None]).flatten()", "future[:-1]")
OF_NUMBERS = {
    "a record that the layer runs along elsewhere": NUMBERS,
    "parts that are stacked": NUMBERS.replace("past.view(-1, 4, 1)", "torch.stack(past.split(4)).unsqueeze(-1)"),
    "two places of one window": NUMBERS.replace(
        "x, y = table[start : start + 10], table[start + 1 : start + 11]",
        "part = table[start : start + 11, :, None]\n    x, y = part[:-1], part[1:]").replace("4, 1)", "4)"),
    "a batch of a record over time": UNREAD.replace("record = torch.randn(250).cumsum(0)", OWN_RANGE).replace(
        "past.view(-1, 4, 1)", "past.view(-1, batch, 1)").replace(
        "table =", "batch = 4\ntable ="),
}  # fmt: skip
PLAIN_NUMBERS = NUMBERS.replace("  #!", "")
IN_TURN = {
    "a layer that runs along all numbers, too": PLAIN_NUMBERS.replace("loss = (", (
        "loss = (net(past[:-1, None, None]).flatten() - past[1:]).square().mean() + (")).replace(
        "net(future[:-1, None, None]).flatten()", "future[:-1]"),
    "consecutive numbers": PLAIN_NUMBERS.replace("past.view(-1, 4, 1)", "past.view(4, -1, 1).transpose(0, 1)"),
    "nothing shows that it is one record": UNREAD.replace("  #!", ""),
    "hours of a day": PLAIN_NUMBERS.replace("future[:-1, None, None]", "record[::4][:49, None, None]"),
    "four records in turn": PLAIN_NUMBERS.replace("torch.randn(250).cumsum(0)", (
        "torch.sin(torch.arange(252) // 4 + torch.arange(252) % 4)")).replace("view(-1, 4", "view(-1, batch").replace(
        "table =", "batch = 4\ntable ="),
}  # fmt: skip
WORDS = "consecutive items into each row"


@pytest.mark.parametrize("name", WRONG)
def test_streams_of_every_nth_item_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "each of its sequences has every 4th item" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_streams_of_consecutive_items_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_streams_of_every_nth_number_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, OF_NUMBERS[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(OF_NUMBERS[name])


@pytest.mark.parametrize("name", IN_TURN)
def test_numbers_in_turn_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, IN_TURN[name]) if WORDS in each.text] == []
