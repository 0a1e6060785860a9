"""Checks the sentence about a causal mask that counts from the first key, for queries that are the last positions."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

CACHED = """\
dot = nn.functional.scaled_dot_product_attention
proj, out = nn.Linear(6, 18), nn.Linear(6, 6)
opt = torch.optim.Adam([*proj.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x, past = torch.randn(8, 4, 6), torch.randn(8, 5, 6)
    q, k, v = proj(x).chunk(3, -1)
    k, v = torch.cat([past, k], dim=1), torch.cat([past, v], dim=1)
    h = dot(q, k, v, is_causal=True)  #!
    loss = (out(h) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OWN = CACHED.replace(
    "    h = dot(q, k, v, is_causal=True)  #!",
    """\
    mask = torch.ones(4, 9).tril().bool()
    scores = (q @ k.mT / 2).masked_fill(~mask, -1e9)  #!
    h = scores.softmax(-1) @ v""",
)
CUT = (
    CACHED.replace(
        "q, k, v = proj(x).chunk(3, -1)", "(q, _, _), (_, k, v) = proj(x[:, -2:]).chunk(3, -1), proj(x).chunk(3, -1)"
    )
    .replace("    k, v = torch.cat([past, k], dim=1), torch.cat([past, v], dim=1)\n", "")
    .replace("out(h) - x", "out(h) - x[:, -2:]")
)
WRONG = {
    "cached keys": CACHED,
    "a triangle": OWN,
    "the last queries": CUT,
    "a mask that is given": CACHED.replace("is_causal=True", "torch.tril(torch.ones(4, 9, dtype=torch.bool))"),
    "options": CACHED.replace("is_causal=True", "**options").replace("for _", "options = dict(is_causal=True)\nfor _"),
}
RIGHT = {
    "a triangle with an offset": OWN.replace("tril()", "tril(5)"),
    "as many queries": CACHED.replace("torch.randn(8, 5, 6)", "torch.zeros(8, 0, 6)"),
    "no causal mask": CACHED.replace("is_causal=True", "is_causal=False"),
    "one key in front, so that no position sees itself": CACHED.replace("randn(8, 5, 6)", "randn(8, 1, 6)"),
    "room for later keys": CACHED.replace("[past, k]", "[k, past]").replace("[past, v]", "[v, past]"),
    "the first queries": CUT.replace("-2:", ":2"),
}
WORDS = "no query sees the last"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_counts_from_the_first_key_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_masks_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
