"""Checks the sentence about reshapes that give each head some rows, not a part of the features of each row."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

ATTENTION = """\
net, x = nn.Linear(12, 12), torch.randn(3, 6, 12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    q = {}
    loss = {}.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PRODUCT = "(q @ q.transpose(-2, -1)).softmax(-1)"
WRONG = {
    "view": ATTENTION.format("net(x).view(3, 4, 6, 3)  #!", PRODUCT),
    "reshape with a size that is left open": ATTENTION.format("net(x).reshape(3, 4, -1, 3)  #!", PRODUCT),
    "scaled first": ATTENTION.format("net(x).view(3, 2, 6, 6)  #!", "((q / 2) @ q.transpose(-2, -1)).softmax(-1)"),
    "PyTorch's attention": ATTENTION.format("net(x).view(3, 4, 6, 3)  #!", "torch.nn.functional."
                                            "scaled_dot_product_attention(q, q, q)"),
    "heads in the batch": ATTENTION.format("net(x).reshape(2 * 6, 3, 6)  #!", "torch.bmm(q, q.mT).softmax(-1)").replace(
        "randn(3, 6, 12)", "randn(6, 3, 12)"),
    "two reshapes": ATTENTION.format("net(x).unflatten(-1, (4, 3)).reshape(3, 4, 6, 3)  #!", PRODUCT),
    "a part of a layer's features": ATTENTION.format("net(x)[..., :8].reshape(12, 6, 2)  #!", PRODUCT),
    "a product with a parameter": ATTENTION.format("(x @ net.weight).view(3, 4, 6, 3)  #!", PRODUCT),
    "einsum": ATTENTION.format("net(x).view(3, 4, 6, 3)  #!", "torch.einsum('bhid,bhjd->bhij', q, q).softmax(-1)"),
}  # fmt: skip
RIGHT = {
    "heads": ATTENTION.format("net(x).view(3, 6, 4, 3).transpose(1, 2)", PRODUCT),
    "heads in the batch": ATTENTION.format("net(x).view(3, 6, 4, 3).transpose(1, 2).reshape(12, 6, 3)", PRODUCT),
    "heads of each row": ATTENTION.format("net(x).view(3, 6, 4, 3).reshape(18, 4, 3)", PRODUCT),
    "time first, heads in the batch": ATTENTION.format(
        "net(x.transpose(0, 1)).reshape(6, 12, 3).transpose(0, 1)", PRODUCT
    ),
    "as many heads as rows": ATTENTION.format("net(x).view(3, 6, 6, 2)", PRODUCT),
    "windows of rows": ATTENTION.format("net(x).view(3, 2, 3, 12)", PRODUCT),
    "channels first": ATTENTION.format("net(x).transpose(1, 2).reshape(3, 4, 3, 6)", PRODUCT),
    "data": ATTENTION.format("net(x); y = x.view(3, 4, 6, 3); y = y @ y.transpose(-2, -1)", "q"),
    "a layout that is learned": ATTENTION.format("net(x).view(3, 18, 4).view(3, 2, 18, 2)", PRODUCT),
    "rows of a parameter": ATTENTION.format(
        "net(x); free = nn.Parameter(torch.randn(6, 12)); q = free.expand(3, 6, 12).reshape(3, 4, 6, 3)", PRODUCT
    ),
    "matrices that a layer computes": ATTENTION.format("net(x).view(3, 2, 6, 6)", "(q @ torch.randn(3, 2, 6, 5))"),
    "no product": ATTENTION.format("net(x).view(3, 4, 6, 3)", "q"),
}
WORDS = "not a part of each row"


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_are_split_in_place_of_features_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_reshapes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


def test_the_sentence_says_what_a_slice_holds(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG["scaled first"]) if WORDS in each.text)
    assert "(3, 2, 6, 6) of (3, 6, 12)" in found.text
    assert "each slice of dimension 1 holds 3 of the 6 rows of dimension 1" in found.text
    assert "`view(3, 6, 2, 6).transpose(1, 2)`" in found.text
