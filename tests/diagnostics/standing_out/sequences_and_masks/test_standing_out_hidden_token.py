"""Checks the sentence about masks that hide the tokens and leave the padding."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
import torch.nn.functional as F
PAD = 0
embed = nn.Embedding(9, 4, padding_idx=PAD)
many = nn.MultiheadAttention(4, 2, batch_first=True)
kind, flag = nn.Embedding(2, 4), nn.Embedding(2, 4, padding_idx=0)
layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
opt = torch.optim.Adam([*embed.parameters(), *many.parameters(), *layer.parameters()], lr=0.01)
lengths = torch.tensor([3, 5, 6])
for _ in range(3):
    ids = torch.randint(1, 9, (3, 6))
    ids[0, 3:], ids[1, 5:] = PAD, PAD
    x = embed(ids)
    scores = x @ x.transpose(-2, -1)
    places = torch.arange(6)[None, :]
    {}
    loss = y.nan_to_num().square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LAYER = "y, _ = many(x, x, x, key_padding_mask={})"
ENCODER = "y = layer(x, src_key_padding_mask={})"
FILL = 'y = scores.masked_fill(({})[:, None, :], float("-inf")).softmax(-1) @ x'
DOT = "y = F.scaled_dot_product_attention(x, x, x, attn_mask=({})[:, None, :].expand(3, 6, 6))"
WRONG = {
    "a layer": LAYER.format("ids != PAD"),
    "an encoder": ENCODER.format("ids > 0"),
    "the opposite of the right one": LAYER.format("~(ids == PAD)"),
    "filled": FILL.format("ids.ne(PAD)"),
    "by lengths": LAYER.format("places < lengths[:, None]"),
    "by lengths of a name of two words": "seq_lens = lengths + 0\n    "
    + LAYER.format("places < seq_lens.unsqueeze(1)"),
    "attention": DOT.format("ids == PAD"),
}
RIGHT = {
    "a layer": LAYER.format("ids == PAD"),
    "an encoder": ENCODER.format("ids.eq(0)"),
    "the opposite of the wrong one": LAYER.format("~(ids != PAD)"),
    "filled": FILL.format("ids == PAD"),
    "by lengths": LAYER.format("places >= lengths[:, None]"),
    "attention": DOT.format("ids != PAD"),
    "special tokens": LAYER.format("ids != 7"),
    "a mask of the tokenizer": LAYER.format("(ids != PAD).long() != 1"),
    "of other tokens": LAYER.format("ids.clone() != 5"),
    "padding on the left": "n_pad = lengths - 3\n    " + LAYER.format("places < n_pad[:, None]"),
    "padding on the left, by what is left": LAYER.format("places < (6 - lengths)[:, None]"),
    "the padding is another id": LAYER.format("ids != 0"),
    "an earlier document": "begin = lengths - 2\n    " + DOT.format("places >= begin[:, None]"),
    "a window": FILL.format("places < torch.arange(6)[:, None] - 2").replace("[:, None, :]", "[None]"),
    "both sides of a place": LAYER.format("places < lengths[:, None]") + "\n    y = y + " + LAYER.format(
        "places >= lengths[:, None]")[len("y, _ = "):] + "[0]",
    "segments": "kinds = (places > 3).long().expand(3, 6)\n    x = x + kind(kinds)\n    " + LAYER.format("kinds != 0"),
    "flags with a padding_idx": (
        "flags = (ids == 4).long()\n    x = x + flag(flags)\n    " + LAYER.format("flags > 0")),
}  # fmt: skip
RIGHT["the free squares of a board"] = "ids = torch.randint(0, 3, (3, 6)); x = embed(ids)\n    " + LAYER.format(
    "ids != PAD"
)
WORDS = "the padding is left"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_hides_tokens_is_named(tmp_path: Path, name: str) -> None:
    body = START.format(WRONG[name] + "  #!")
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_a_mask_that_hides_padding_is_left_alone(tmp_path: Path, name: str) -> None:
    body = START.format(RIGHT[name])
    body = body.replace("PAD = 0", "PAD = 7") if name == "the padding is another id" else body
    assert [each.text for each in sentences(tmp_path, body) if WORDS in each.text] == []


VALID = """\
many, score = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 1)
opt = torch.optim.Adam([*many.parameters(), *score.parameters()], lr=0.01)
for _ in range(3):
    x, valid = torch.randn(3, 6, 4), torch.zeros(3, 6, dtype=torch.bool)
    for row, length in enumerate((3, 5, 6)):
        valid[row, :length] = True
    y, _ = many(x, x, x, key_padding_mask=valid)  #!
    weights = score(y).squeeze(-1).masked_fill(~valid, -1e9).softmax(1)
    loss = (weights * torch.randn(3, 6)).nan_to_num().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
USED = {
    "the right mask": VALID.replace("=valid)  #!", "=~valid)"),
    "another name": VALID.replace("valid", "part").replace("  #!", ""),
    "a mask of what is free": VALID.replace("valid", "invalid").replace("  #!", ""),
    "scores of something else": VALID.replace("score(y)", "score(x)").replace("  #!", ""),
    "chosen places": VALID.replace("[row, :length]", "[row, length - 3 :]").replace("  #!", ""),
    "no other use": VALID.replace(".masked_fill(~valid, -1e9)", "").replace("  #!", ""),
}


def test_a_mask_that_hides_where_another_line_does_not_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, VALID) if "hides those where it is False" in each.text)
    assert found.labels[0].span.line == marked(VALID)


@pytest.mark.parametrize("name", USED)
def test_masks_of_one_meaning_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, USED[name]) if "hides those where it is False" in each.text] == []


def test_the_sentence_says_which_places_are_hidden(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, START.format(WRONG["a layer"])) if WORDS in each.text)
    assert "hides the places where its mask is True, and `ids != PAD` makes the mask True at the tokens" in found.text
