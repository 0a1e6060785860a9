"""Checks the sentence about a recurrent layer that runs along the batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

PLAIN = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 6)
        self.out = nn.Linear(6, 4)

    def forward(self, x, lengths=None):
        states, _ = self.rnn(x)  #!
        return self.out(states[:, -1])

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    x, y = torch.randn(8, 5, 3), torch.randint(0, 4, (8,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "LSTM": PLAIN,
    "GRU in two directions": PLAIN.replace("LSTM(3, 6)", "GRU(3, 3, 2, bidirectional=True)"),
    "RNN with dropout": PLAIN.replace("LSTM", "RNN").replace(
        "states[:, -1]", "nn.functional.dropout(states, 0.1)[:, -1, :]"),
    "select": PLAIN.replace("states[:, -1]", "states.select(1, -1)"),
    "the last of each length": PLAIN.replace(
        "states[:, -1]", "states[torch.arange(len(x)), torch.full((len(x),), 3)]"),
    "a number for each row": PLAIN.replace("torch.randint(0, 4, (8,))", "torch.randn(8, 4)").replace(
        "cross_entropy", "mse_loss"),
}  # fmt: skip
STEPS = (
    PLAIN.replace("states[:, -1]", "states")
    .replace("net(x)", "net(x).flatten(0, 1)")
    .replace("torch.randint(0, 4, (8,))", "torch.randint(0, 4, (8, 5)).flatten()")
)
RIGHT = {
    "the batch first": PLAIN.replace("(3, 6)", "(3, 6, batch_first=True)"),
    "time first": PLAIN.replace("states[:, -1]", "states[-1]").replace("randn(8, 5", "randn(5, 8"),
    "time first with a transpose": PLAIN.replace("states[:, -1]", "states[-1]").replace(
        "self.rnn(x)", "self.rnn(x.transpose(0, 1))"),
    "a target for each step": STEPS,
    "a target for each step of one sequence": PLAIN.replace("randn(8, 5", "randn(8, 1"),
    "one of several streams": PLAIN.replace("states[:, -1]", "states[:, 0]"),
    "a mean over streams": PLAIN.replace("states[:, -1]", "states.mean(1)"),
    "as many steps as rows": PLAIN.replace("randn(8, 5", "randn(8, 8"),
    "without a batch": PLAIN.replace("self.rnn(x)", "self.rnn(x[:, 0])").replace("states[:, -1]", "states"),
    "the state at the end": PLAIN.replace("states, _", "_, (states, _)").replace("states[:, -1]", "states[-1]")
    .replace("randn(8, 5", "randn(5, 8"),
    "targets of time and batch": PLAIN.replace("states[:, -1]", "states").replace(
        "net(x)", "net(x).transpose(1, 2)").replace("randint(0, 4, (8,))", "randint(0, 4, (8, 5))"),
}  # fmt: skip
WORDS = "as along time"


@pytest.mark.parametrize("name", WRONG)
def test_a_layer_that_runs_along_the_batch_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "runs along the 8 rows of its input, of shape (8, 5, 3)" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_layer_that_runs_along_time_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


ATTENTION = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.mix = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1, enable_nested_tensor=False)
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        states = self.mix(self.inner(x))  #!
        return self.out(states.mean(1))

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    x, y = torch.randn(8, 5, 3), torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SERIES = (
    ATTENTION.replace("for _ in range(3):\n    x, y", "x, y")
    .replace("randn(8, 5, 3)", "randn(SIZE)")
    .replace("(8,))\n    loss", "(40,))\nfor _ in range(3):\n    loss")
)
LAYER = "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1, enable_nested_tensor=False)"
ALONG = {
    "an encoder": ATTENTION,
    "the first position": ATTENTION.replace("states.mean(1)", "states[:, 0]"),
    "a mean that keeps the dimension": ATTENTION.replace("states.mean(1)", "states.mean(1, keepdim=True)[:, 0]"),
    "a distribution": ATTENTION.replace("states.mean(1))", "states.mean(1, keepdim=True).expand(-1, 7, -1))").replace(
        "torch.randint(0, 2, (8,))", "torch.randn(8, 7, 2)").replace("nn.functional.cross_entropy(net(x), y)", (
        "-torch.distributions.Normal(net(x), 0.5).log_prob(y).mean()")),
    "an error that is written out": ATTENTION.replace("torch.randint(0, 2, (8,))", "torch.randn(8, 2)").replace(
        "nn.functional.cross_entropy(net(x), y)", "(net(x) - y).square().mean()"),
    "attention alone": ATTENTION.replace(LAYER, "nn.MultiheadAttention(4, 2)").replace(
        "states = self.mix(self.inner(x))  #!", "h = self.inner(x)\n        states = h + self.mix(h, h, h)[0]  #!"),
}  # fmt: skip
ATTENDS = {
    "the batch first": ATTENTION.replace("(4, 2, 8)", "(4, 2, 8, batch_first=True)"),
    "time first": ATTENTION.replace("states.mean(1)", "states.mean(0)").replace("randn(8, 5", "randn(5, 8"),
    "the batch moved": ATTENTION.replace("self.mix(self.inner(x))", "self.mix(self.inner(x).transpose(0, 1))").replace(
        "states.mean(1)", "states.mean(0)"),
    "samples look at each other, after a layer along time": ATTENTION.replace("        self.out =", (
        "        self.first = nn.TransformerEncoderLayer(4, 2, 8)\n        self.out =")).replace(
        "self.inner(x))", "self.first(self.inner(x).permute(1, 0, 2)).permute(1, 0, 2))"),
    "beside a layer along time": ATTENTION.replace("        self.out =", (
        "        self.first = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)\n        self.out =")).replace(
        "self.inner(x))", "self.first(self.inner(x)))"),
    "a series of nodes": SERIES.replace("SIZE", "40, 7, 3").replace("net(x), y", "net(x[:-1]), y[1:]"),
    "a target for each step of a series": SERIES.replace("SIZE", "40, 7, 3"),
    "a target for each position": ATTENTION.replace("states.mean(1)", "states").replace(
        "net(x)", "net(x).transpose(1, 2)").replace("(8,)", "(8, 5)"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONG)
def test_attention_along_the_batch_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, ALONG[name]) if WORDS in each.text)
    assert "runs along the 8 rows of its input, of shape (8, 5, 4)" in found.text
    assert found.labels[0].span.line == marked(ALONG[name])


@pytest.mark.parametrize("name", ATTENDS)
def test_attention_along_time_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, ATTENDS[name]) if WORDS in each.text] == []
