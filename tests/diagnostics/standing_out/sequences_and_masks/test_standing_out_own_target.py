"""Checks the sentence about a causal model whose targets are its inputs, without a shift."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

RECURRENT = """\
words, rnn, out = nn.Embedding(9, 6), nn.GRU(6, 5, batch_first=True), nn.Linear(5, 9)
opt = torch.optim.Adam([*words.parameters(), *rnn.parameters(), *out.parameters()], lr=0.01)
data = torch.randint(0, 9, (32, 8))
for _ in range(3):
    x = data[torch.randperm(32)[:8]]
    logits = out(rnn(words(x))[0])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 9), x.reshape(-1))  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ATTENTION = (
    RECURRENT.replace("nn.GRU(6, 5, batch_first=True), nn.Linear(5, 9)", "nn.Linear(6, 18), nn.Linear(6, 9)")
    .replace(
        "logits = out(rnn(words(x))[0])",
        "h = words(x[:, :-1])\n    q, k, v = rnn(h).chunk(3, -1)\n"
        "    logits = out(h + nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))",
    )
    .replace("logits.reshape(-1, 9), x.reshape(-1)", "logits.mT, x[:, :-1]")
)
AUTOENCODER = RECURRENT.replace("nn.GRU(", "nn.LSTM(").replace(
    "rnn(words(x))[0]", ("rnn(words(x.roll(1, 1)), rnn(words(x))[1])[0]")
)
CUT_OUT = RECURRENT.replace("data = torch.randint(0, 9, (32, 8))", "data = torch.randint(0, 9, (200,))").replace(
    "x = data[torch.randperm(32)[:8]]",
    "at = torch.randint(0, 190, (8,))\n    x, y = (torch.stack([data[i:i + 8] for i in at]) for _ in range(2))",
)
CUT_OUT = CUT_OUT.replace("x.reshape(-1))", "y.reshape(-1))")
COPIES = CUT_OUT.replace("(torch.stack([data[i:i + 8] for i in at]) for _ in range(2))", (
    "(torch.from_numpy(data.numpy()[at[:, None] + torch.arange(8)]) for _ in range(2))"))  # fmt: skip
LAYER = CUT_OUT.replace("nn.GRU(6, 5, batch_first=True), nn.Linear(5, 9)", (
    "nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), nn.Linear(6, 9)")).replace(
    "rnn(words(x))[0]", "rnn(words(x), src_mask=nn.Transformer.generate_square_subsequent_mask(8))")  # fmt: skip
WRONG = {
    "cut out twice": CUT_OUT,
    "copied twice": COPIES,
    "a layer with a mask": LAYER,
    "a recurrent layer": RECURRENT,
    "causal attention": ATTENTION,
    "time first": RECURRENT.replace(", batch_first=True", "")
    .replace("words(x)", "words(x.t())")
    .replace("x.reshape", "x.t().reshape"),
}
RIGHT = {
    "cut out one later": CUT_OUT.replace(
        "data[i:i + 8] for i in at]) for _ in", "data[i + n:i + n + 8] for i in at]) for n in"
    ),
    "some ids changed": CUT_OUT.replace("logits =", "x[:, 3] = torch.randint(0, 9, (8,))\n    logits ="),
    "all steps alike": CUT_OUT.replace("logits =", "x = y = x[:, :1].repeat(1, 8)\n    logits =").replace(
        "y.reshape(-1)", "(y + 0).reshape(-1)"
    ),
    "a layer that sees all": LAYER.replace(
        "generate_square_subsequent_mask(8)", "generate_square_subsequent_mask(8) * 0"
    ),
    "shifted ids": ATTENTION.replace("logits.mT, x[:, :-1]", "logits.mT, x[:, 1:]"),
    "shifted logits": RECURRENT.replace("logits.reshape(-1, 9), x.reshape(-1)", "logits[:, :-1].mT, x[:, 1:]"),
    "tags": RECURRENT.replace("x.reshape(-1))", "(x % 4).reshape(-1))"),
    "an autoencoder": AUTOENCODER,
    "a narrow code": RECURRENT.replace("nn.Linear(5, 9)", "nn.Sequential(nn.Linear(5, 2), nn.Linear(2, 9))"),
    "both directions": RECURRENT.replace("batch_first=True", "batch_first=True, bidirectional=True").replace(
        "(5, 9)", "(10, 9)"
    ),
    "words that are left out": RECURRENT.replace("rnn(words(x))", "rnn(words(x) * (torch.rand(8, 8, 1) < 0.7))"),
    "embeddings that are shifted": RECURRENT.replace(
        "rnn(words(x))", "rnn(nn.functional.pad(words(x), (0, 0, 1, -1)))"
    ),
}
CODEC = RECURRENT.replace("nn.Linear(5, 9)", "nn.Linear(5, 9)\nback = nn.GRU(5, 5, batch_first=True)").replace(
    "out(rnn(words(x))[0])", "out(back(rnn(words(x))[0])[0])"
)
RIGHT |= {
    "a code, a little narrower": CODEC,
    "a code with noise": CODEC.replace("GRU(6, 5", "GRU(6, 6").replace("GRU(5, 5", "GRU(6, 5").replace(
        "back(rnn(words(x))[0])", "back(rnn(words(x))[0] + 0.5 * torch.randn(8, 8, 6))"),
}  # fmt: skip
WORDS = "without a shift"


@pytest.mark.parametrize("name", WRONG)
def test_targets_that_are_the_inputs_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_targets_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
