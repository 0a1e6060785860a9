"""Checks the sentence about vectors for rows that broadcast along columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NOISE = """\
bar = torch.linspace(0.9, 0.1, 10)
net = nn.Linear(9, 8)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    x, t = torch.randn(8, 8), torch.randint(0, 10, (8,))
    noise = torch.randn(8, 8)
    keep = bar[t]
    noisy = keep.sqrt() * x + (1 - keep).sqrt() * noise  #!
    loss = (net(torch.cat([noisy, t.float().unsqueeze(1)], 1)) - noise).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOKED_UP = NOISE.replace("t.float().unsqueeze(1)], 1))", "emb(t)], 1))").replace(
    "net =", "emb = nn.Embedding(10, 1)\nnet ="
)
WRONG = {
    "a column of the same": NOISE,
    "an embedding": LOOKED_UP,
    "an index": NOISE.replace("t.float().unsqueeze(1)", "t.float()[:, None]"),
}
RIGHT = {
    "a column": NOISE.replace("bar[t]", "bar[t].unsqueeze(1)"),
    "other sizes": NOISE.replace("torch.randn(8, 8), torch.randint(0, 10, (8,))", (
        "torch.randn(16, 8), torch.randint(0, 10, (16,))")).replace("noise = torch.randn(8, 8)", (
        "noise = torch.randn(16, 8)")).replace("keep = bar[t]", "keep = bar[t].unsqueeze(1)"),
    "a mean of columns": NOISE.replace("keep = bar[t]", "keep = x.mean(0).sigmoid()"),
    "scores of pairs": NOISE.replace("torch.randn(8, 8), torch.randint", "torch.randn(8, 5), torch.randint").replace(
        "keep.sqrt() * x + (1 - keep).sqrt() * noise", "keep.sqrt() * (x @ x.T) + noise"),
    "no look-up": NOISE.replace("keep = bar[t]", "keep = t / 10.0"),
    "made once": NOISE.replace("x, t = torch.randn(8, 8), torch.randint(0, 10, (8,))", "x = torch.randn(8, 8)").replace(
        "net =", "t = torch.randint(0, 10, (8,))\nnet ="),
    "trained": NOISE.replace("bar = torch.linspace(0.9, 0.1, 10)", "bar = nn.Parameter(torch.linspace(0.9, 0.1, 10))"),
    "not for rows": NOISE.replace("t.float().unsqueeze(1)", "noise[:, :1]"),
}  # fmt: skip
WORDS = "although they are one for each row"


@pytest.mark.parametrize("name", WRONG)
def test_a_vector_for_rows_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "combines the 8 elements of `keep.sqrt()` with the 8 columns of `x`, of shape (8, 8)" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_vectors_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
