"""Checks the sentence about embeddings whose first position is the padding."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

RANKS = """\
place = nn.Embedding(5, 3, padding_idx=0)  #!
out = nn.Linear(3, 1)
opt = torch.optim.Adam([*place.parameters(), *out.parameters()], lr=0.01)
for _ in range(4):
    ranks = torch.arange(5).unsqueeze(0).expand(8, 5)
    loss = out(place(ranks)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a keyword": RANKS,
    "by its place": RANKS.replace("padding_idx=0", "0"),
    "from 0": RANKS.replace("arange(5)", "arange(0, 5)"),
    "added to a batch": RANKS.replace(".unsqueeze(0).expand(8, 5)", "").replace(
        "out(place(ranks))", "out(torch.ones(8, 5, 3) + place(ranks))"
    ),
}
FUNCTION = RANKS.replace("  #!", "").replace(
    "nn.Embedding(5, 3, padding_idx=0)", "nn.ParameterDict({'a': torch.randn(5, 3)})"
)
OF_ONE = {
    "the function": FUNCTION.replace("place(ranks)", (
        "nn.functional.embedding(ranks, place['a'], padding_idx=0)")).replace("mean()", "mean()  #!"),
    "a part of the function": FUNCTION.replace("out = ", (
        "from functools import partial\nlook = partial(nn.functional.embedding, padding_idx=0)\nout = ")).replace(
        "place(ranks)", "look(ranks, place['a'])").replace("mean()", "mean()  #!"),
}  # fmt: skip
RIGHT = {
    "no padding": RANKS.replace(", padding_idx=0", ""),
    "from 1": RANKS.replace("arange(5)", "arange(1, 5)").replace("expand(8, 5)", "expand(8, 4)"),
    "moved by one": RANKS.replace("Embedding(5", "Embedding(6").replace("place(ranks)", "place(ranks + 1)"),
    "masked": RANKS.replace("place(ranks)", "place(ranks * (torch.rand(8, 5) > 0.5))"),
    "items": RANKS.replace("torch.arange(5).unsqueeze(0).expand(8, 5)", "torch.randint(0, 5, (8, 5))"),
    "a whole table": RANKS.replace(".unsqueeze(0).expand(8, 5)", ""),
    "a table of items": RANKS.replace("out(place(ranks))", "out(place(ranks) + place(torch.randint(0, 5, (8, 5))))"),
    "the function": RANKS.replace("place(ranks)", "nn.functional.embedding(ranks, place.weight)"),
    "the function without padding": FUNCTION.replace("place(ranks)", "nn.functional.embedding(ranks, place['a'])"),
    "the function with and without padding": FUNCTION.replace("place(ranks)", (
        "nn.functional.embedding(ranks, place['a'], padding_idx=0) + nn.functional.embedding(ranks, place['a'])")),
    "a padding that is taken away": RANKS.replace("out = ", "place.padding_idx = None\nout = "),
    "indices that a line changes": RANKS.replace("Embedding(5", "Embedding(6").replace(
        "torch.arange(5).unsqueeze(0).expand(8, 5)",
        "torch.arange(5).view(1, 5)\n    ranks += 1\n    ranks = ranks.expand(8, 5)",
    ),
    "another padding": RANKS.replace("padding_idx=0", "padding_idx=4"),
}  # fmt: skip
WORDS = "is its `padding_idx`"


@pytest.mark.parametrize("name", WRONG)
def test_a_position_that_is_the_padding_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "counts from 0, and row 0 of `place.weight`" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_whose_padding_is_a_position_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, OF_ONE[name]) if WORDS in each.text)
    assert "counts from 0, and row 0 of `place" in found.text
    assert found.labels[0].span.line == marked(OF_ONE[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_embeddings_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
