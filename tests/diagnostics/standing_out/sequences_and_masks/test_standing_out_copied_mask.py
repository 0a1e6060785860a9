"""Checks the sentence about copies of a mask that are in another order than the heads."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LAYER = """\
attention = nn.MultiheadAttention(8, 2, batch_first=True)
opt = torch.optim.SGD(attention.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(6, 5, 8)
    hidden = torch.arange(5) >= torch.randint(1, 6, (6, 1))
    mask = hidden[:, None, :].expand(-1, 5, -1)
    mask = {}
    loss = attention(x, x, x, attn_mask=mask)[0].square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OWN = """\
project, heads = nn.Linear(8, 8), 2
opt = torch.optim.SGD(project.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(6, 5, 8)
    parts = {}
    scores = parts @ parts.transpose(1, 2)
    hidden = torch.arange(5) >= torch.randint(1, 6, (6, 1))
    bias = torch.zeros(6, 1, 5).masked_fill(hidden[:, None], -1e9)
    bias = {}
    loss = ((scores + bias).softmax(-1) @ parts).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MERGED = "project(x).view(6, 5, heads, 4).transpose(1, 2).reshape(-1, 5, 4)"
WRONG = {
    "a layer": LAYER.format("mask.repeat(2, 1, 1)  #!"),
    "expand": LAYER.format("mask.expand(2, 6, 5, 5).reshape(12, 5, 5)  #!"),
    "own attention": OWN.format(MERGED, "torch.cat([bias] * heads)  #!"),
    "einsum": OWN.format(MERGED, "bias.repeat(heads, 1, 1)  #!").replace(
        "parts @ parts.transpose(1, 2)", "torch.einsum('nid,njd->nij', parts, parts)"
    ),
}
ALIKE = LAYER.replace("    mask = hidden[:, None, :].expand(-1, 5, -1)\n", "")
RIGHT = {
    "alike, ones": ALIKE.format("torch.ones(6, 5, 5, dtype=torch.bool).triu(1).repeat(2, 1, 1)"),
    "alike, a full tensor": ALIKE.format('torch.full((6, 5, 5), float("-inf")).triu(1).repeat(2, 1, 1)'),
    "alike, a sum": ALIKE.format(
        "(torch.zeros(6, 5, 5) + nn.Transformer.generate_square_subsequent_mask(5)).repeat(2, 1, 1)"
    ),
    "alike, places": ALIKE.format(
        "(torch.arange(5).expand(6, 5)[:, :, None] < torch.arange(5).expand(6, 5)[:, None]).repeat(2, 1, 1)"
    ),
    "random for each": ALIKE.format("(torch.rand(6, 5, 5) > 0.9).repeat(2, 1, 1)"),
    "a layer": LAYER.format("mask.repeat_interleave(2, dim=0)"),
    "one mask for all": LAYER.format("hidden[:1, None].expand(6, 5, 5).repeat(2, 1, 1)"),
    "copies of one mask": LAYER.format("torch.stack([mask_of] * 6).repeat(2, 1, 1)").replace(
        "    mask = torch.stack", ("    mask_of = mask[0].clone()\n    mask = torch.stack")
    ),
    "one mask for all, joined": LAYER.format("torch.cat([mask[:1]] * 6).repeat(2, 1, 1)"),
    "own attention": OWN.format(MERGED, "bias.repeat_interleave(heads, 0)"),
    "heads one after another": OWN.format("torch.cat(project(x).split(4, dim=-1))", "bias.repeat(heads, 1, 1)"),
    "heads first": OWN.format(
        "project(x).view(6, 5, heads, 4).permute(2, 0, 1, 3).reshape(-1, 5, 4)", "bias.repeat(heads, 1, 1)"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_copies_in_the_order_of_other_rows_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "puts copies together" in each.text)
    assert "(2, 6)" in found.text
    assert "(6, 2)" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_copies_in_the_right_order_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "puts copies together" in each.text] == []
