"""Checks the sentence about masks of numbers that attention adds to its scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

OWN = """\
proj, out = nn.Linear(4, 4), nn.Linear(4, 1)
mask = torch.tril(torch.ones(6, 6))
opt = torch.optim.SGD([*proj.parameters(), *out.parameters()], lr=0.1)
for _ in range(3):
    h = proj(torch.randn(2, 5, 4))
    mixed = nn.functional.scaled_dot_product_attention(h, h, h, attn_mask=mask[:5, :5])  #!
    loss = out(mixed).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LAYER = """\
layer = nn.MultiheadAttention(4, 2, batch_first=True)
mask = torch.tril(torch.ones(5, 5))
opt = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    h = torch.randn(2, 5, 4)
    mixed, _weights = layer(h, h, h, attn_mask=mask)  #!
    loss = mixed.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "attention": OWN,
    "a layer": LAYER,
    "padding": LAYER.replace("attn_mask=mask", "key_padding_mask=pad").replace(
        "h = torch", "pad = (torch.rand(2, 5) > 0.7).float()\n    h = torch"),
}  # fmt: skip
RIGHT = {
    "filled through NumPy": OWN.replace("mask = torch.tril(torch.ones(6, 6))", (
        "mask = torch.tril(torch.ones(6, 6))\narray = mask.numpy()\narray[array == 0] = float('-inf')")),
    "filled through a view": OWN.replace("mask = torch.tril(torch.ones(6, 6))", (
        "mask = torch.tril(torch.ones(6, 6))\nmask.data[mask == 0] = float('-inf')")),
    "a bias for equal places": OWN.replace("mask[:5, :5]", "(torch.arange(5)[:, None] == torch.arange(5)).float()"),
    "bools": OWN.replace("torch.ones(6, 6)", "torch.ones(6, 6, dtype=torch.bool)"),
    "made bools": OWN.replace("mask[:5, :5]", "mask[:5, :5].bool()"),
    "large numbers": OWN.replace("mask[:5, :5]", "(1 - mask[:5, :5]) * -1e9"),
    "filled": LAYER.replace("mask = torch.tril(torch.ones(5, 5))", (
        "mask = torch.zeros(5, 5).masked_fill(torch.tril(torch.ones(5, 5)) == 0, float('-inf'))")),
    "a bias of distances": OWN.replace("mask[:5, :5]", "-(torch.arange(5)[:, None] - torch.arange(5)).abs().float()"),
    "the mask of the library": LAYER.replace("torch.tril(torch.ones(5, 5))", (
        "nn.Transformer.generate_square_subsequent_mask(5)")),
}  # fmt: skip
RIGHT["a preference for earlier places"] = OWN.replace("out(mixed).square().mean()", (
    "nn.functional.mse_loss(out(mixed.mean(1)).squeeze(1), torch.randn(2))"))  # fmt: skip
WORDS = "adds the zeros and ones of"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_is_added_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "because it is a mask of float32" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_mask_that_hides_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
