"""Checks the sentence about tensors that a shuffle of Python or NumPy is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

ROWS = """\
import random
import numpy as np
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
data = torch.randn(32, 4)
for _ in range(3):
    random.shuffle(data)  #!
    loss = (net(data[:8, :3]) - data[:8, 3:]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "rows": ROWS,
    "NumPy": ROWS.replace("random.shuffle", "np.random.shuffle"),
    "a generator": ROWS.replace("random.shuffle", "random.Random(0).shuffle"),
    "numbers": ROWS.replace("random.shuffle(data)", "order = torch.arange(32); random.shuffle(order)"),
}
RIGHT = {
    "a list": ROWS.replace("random.shuffle(data)", "order = list(range(32)); random.shuffle(order)"),
    "an array": ROWS.replace("random.shuffle(data)", "np.random.shuffle(data.numpy())"),
    "a list of tensors": ROWS.replace("random.shuffle(data)", "rows = list(data); random.shuffle(rows)"),
    "a permutation": ROWS.replace("random.shuffle(data)", "data = data[torch.randperm(32)]"),
}
WORDS = "views of its memory"


@pytest.mark.parametrize("name", WRONG)
def test_views_that_are_exchanged_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_shuffles_are_left_alone(tmp_path: Path, name: str) -> None:
    assert not [each for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text]
