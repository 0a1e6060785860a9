"""Checks the sentence about an index of steps that is the length of a sequence."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

TEXTS = """\
words, rnn, out = nn.Embedding(9, 6, padding_idx=0), nn.GRU(6, 5, batch_first=True), nn.Linear(5, 2)
opt = torch.optim.Adam([*words.parameters(), *rnn.parameters(), *out.parameters()], lr=0.01)
lengths = torch.randint(2, 9, (32,))
data = torch.randint(1, 9, (32, 8)) * (torch.arange(8) < lengths[:, None])
for _ in range(3):
    pick = torch.randperm(32)[:8]
    x, n, y = data[pick], lengths[pick], torch.randint(0, 2, (8,))
    h = rnn(words(x))[0]
    place = n.clamp(max=h.size(1) - 1)  #!
    loss = nn.functional.cross_entropy(out(h[torch.arange(8), place]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "lengths": TEXTS,
    "counts": TEXTS.replace("n.clamp(max=", "torch.clamp((x != 0).sum(1), max="),
    "gather": TEXTS.replace("h[torch.arange(8), place]", "h.gather(1, place[:, None, None].expand(-1, 1, 5))[:, 0]"),
    "a least value, too": TEXTS.replace("clamp(max=h", "clip(0, h"),
}
RIGHT = {
    "the place of the last step": TEXTS.replace("n.clamp", "(n - 1).clamp"),
    "one less afterwards": TEXTS.replace("- 1)", ") - 1"),
    "a table of lengths": TEXTS.replace("h[torch.arange(8), place]", "h.mean(1) + table[place]").replace(
        "for _", "table = torch.randn(8, 5, requires_grad=True)\nfor _"
    ),
    "a place that is drawn": TEXTS.replace("n.clamp", "torch.randint(0, 9, (8,)).clamp"),
    "an id at this place": TEXTS.replace("for _", "data[torch.arange(32), lengths.clamp(max=7)] = 8\nfor _"),
    "an id at this place, by scatter": TEXTS.replace(
        "for _", "data.scatter_(1, lengths.clamp(max=7)[:, None], 8)\nfor _"
    ),
    "a state in front": TEXTS.replace(
        "h = rnn(words(x))[0]", ("h = torch.cat([torch.zeros(8, 1, 5), rnn(words(x))[0]], 1)")
    ),
}
WORDS = "takes the step whose number is the length"


@pytest.mark.parametrize("name", WRONG)
def test_a_length_as_an_index_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_indices_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
