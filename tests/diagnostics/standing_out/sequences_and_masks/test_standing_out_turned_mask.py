"""Checks the sentence about masks with which each position attends to the later ones only."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
import torch.nn.functional as F
T = 6
later = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
before = torch.ones(T, T).tril().bool()
many = nn.MultiheadAttention(4, 2, batch_first=True)
layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
net = nn.Linear(4, 4)
opt = torch.optim.Adam([*net.parameters(), *many.parameters(), *layer.parameters()], lr=0.01)
for _ in range(3):
    x = net(torch.randn(3, T, 4))
    scores = x @ x.transpose(-2, -1)
    {}
    loss = y.nan_to_num().square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DOT = "y = F.scaled_dot_product_attention(x, x, x, attn_mask={})"
LAYER = "y, _ = many(x, x, x, attn_mask={}, need_weights=False)"
FILL = 'y = scores.masked_fill({}, float("-inf")).softmax(-1) @ x'
WRONG = {
    "attention": DOT.format("later[:T, :T]"),
    "the opposite of the right one": DOT.format("~before"),
    "compared with 0": DOT.format("torch.tril(torch.ones(T, T)) == 0"),
    "a layer": LAYER.format("before"),
    "an encoder": "y = layer(x, src_mask=before)",
    "filled": FILL.format("before"),
    "heads that are joined": FILL.format("before").replace("scores", "s").replace("y = ", "y = torch.cat([")
    + " for s in (scores, 2 * scores)], -1)",
    "a large number": FILL.format("before").replace('float("-inf")', "-1e9"),
    "the least number": FILL.format("before").replace('float("-inf")', "torch.finfo(x.dtype).min"),
    "a constant": FILL.format("before").replace('float("-inf")', "-torch.inf"),
    "places": FILL.format("torch.arange(T)[None, :] <= torch.arange(T)[:, None]"),
    "chosen": "y = torch.where(later, scores, -1e9).softmax(-1) @ x",
    "items": "scores[:, before] = -1e9; y = scores.softmax(-1) @ x",
    "added": "y = (scores + before.float() * -1e9).softmax(-1) @ x",
    "taken off": "y = (scores - 1e9 * (1 - later.float())).softmax(-1) @ x",
    "a sum in attention": DOT.format('torch.full((T, T), float("-inf")).tril()'),
}
RIGHT = {
    "attention": DOT.format("before"),
    "the opposite of the wrong one": DOT.format("~later"),
    "compared with 1": DOT.format("torch.tril(torch.ones(T, T)) == 1"),
    "a layer": LAYER.format("later"),
    "an encoder": "y = layer(x, src_mask=later)",
    "filled": FILL.format("~before"),
    "with itself and those after it": DOT.format("torch.ones(T, T).triu().bool()"),
    "no softmax": "y = scores.masked_fill(before, float('-inf')).exp() @ x",
    "along the queries": 'y = (scores.masked_fill(before, float("-inf")).softmax(1)).mT @ x',
    "the next part": DOT.format("later[:, 2:]").replace("x, x, attn", "x[:, 2:], x[:, 2:], attn"),
    "a part beside the diagonal": DOT.format("~before[1:, :-1]").replace("(x, x, x", "(x[:, 1:], x[:, :-1], x[:, :-1]"),
    "both directions": FILL.format("before") + " + scores.masked_fill(later, float('-inf')).softmax(-1) @ x",
    "places": FILL.format("torch.arange(T)[None, :] > torch.arange(T)[:, None]"),
    "chosen": "y = torch.where(before, scores, -1e9).softmax(-1) @ x",
    "items": "scores[:, later] = -1e9; y = scores.softmax(-1) @ x",
    "added": "y = (scores + later.float() * -1e9).softmax(-1) @ x",
    "taken off": "y = (scores - 1e9 * (1 - before.float())).softmax(-1) @ x",
    "a sum in attention": DOT.format('torch.full((T, T), float("-inf")).triu(1)'),
    "numbers of distance": "y = (scores + before.float() * -0.1).softmax(-1) @ x",
    "a summary of the rest beside each": FILL.format("before")
    .replace('float("-inf")', "-1e9")
    .replace("y = ", "y = torch.cat([x, ")
    + "], -1)",
    "by attention, beside each": DOT.format("later").replace("y = ", "y = torch.cat([") + ".nan_to_num(), x], -1)",
    "a small number": FILL.format("before").replace('float("-inf")', "0.0"),
}
NEXT = START.replace(
    "    x = net(torch.randn(3, T, 4))", "    seq = torch.randn(3, T + 1, 4)\n    x = net(seq[:, :-1])"
).replace("y.nan_to_num().square().mean()", "F.mse_loss(y, seq[:, 1:])")
LATER = {
    "attention": DOT.format("torch.ones(T, T).triu().bool()"),
    "a layer": LAYER.format("~torch.ones(T, T, dtype=torch.bool).triu()"),
    "a layer and a triangle below the diagonal": LAYER.format("torch.tril(torch.ones(T, T), diagonal=-1) == 1"),
    "filled": FILL.format("torch.triu(torch.ones(T, T)) == 0"),
}
WORDS = "each position sees only those after it"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_is_turned_round_is_named(tmp_path: Path, name: str) -> None:
    body = START.format(WRONG[name] + "  #!")
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    is_added = name in ("added", "taken off", "a sum in attention")
    assert ("very low numbers" in found.text) == is_added
    assert ("attends where" in found.text) == (
        not is_added and ("scaled_dot" in WRONG[name] or "where(" in WRONG[name])
    )
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_other_masks_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, START.format(RIGHT[name])) if WORDS in each.text] == []


@pytest.mark.parametrize("name", LATER)
def test_a_mask_that_shows_the_next_step_is_named(tmp_path: Path, name: str) -> None:
    body = NEXT.format(LATER[name] + "  #!")
    (found,) = (each for each in sentences(tmp_path, body) if "each position sees only itself and those" in each.text)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("given", [("[:, 1:])", "[:, :-1])"), ("net(seq[:, :-1])", "net(seq[:, 1:])")])
def test_a_model_of_the_step_before_looks_ahead(tmp_path: Path, given: tuple[str, str]) -> None:
    body = NEXT.replace(*given).replace("1:])\n    opt", ":-1])\n    opt").format(LATER["attention"])
    assert [each.text for each in sentences(tmp_path, body) if "each position sees only" in each.text] == []


def test_a_mask_whose_name_says_that_it_is_causal_is_named(tmp_path: Path) -> None:
    body = START.format("causal = torch.ones(T, T).triu().bool()\n    " + DOT.format("causal"))
    (found,) = (each for each in sentences(tmp_path, body) if "each position sees only itself and those" in each.text)
    assert "with `causal`" in found.text


def test_a_causal_mask_of_a_model_that_reads_from_the_right_is_left_alone(tmp_path: Path) -> None:
    body = NEXT.replace("net(seq[:, :-1])", "net(seq[:, 1:])").replace(
        "F.mse_loss(y, seq[:, 1:])", "F.mse_loss(y, seq[:, :-1])"
    )
    body = body.format("causal = torch.ones(T, T).triu().bool()\n    " + DOT.format("causal"))
    assert [each.text for each in sentences(tmp_path, body) if "each position sees only" in each.text] == []
