"""Targets of a language model that are shifted by one step twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_SCRIPT = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset
    import torch.nn.functional as F
    torch.manual_seed(0)
    stream = torch.randint(0, 9, (80,))

    class Texts(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            row = stream[i * 10 : i * 10 + 10]
            return row[:-1], row[1:]

    def windows(starts):
        x = torch.stack([stream[s : s + 6] for s in starts])
        return x, torch.stack([stream[s + 1 : s + 7] for s in starts])

    rows = stream.view(8, 10)
    table, layer, out = nn.Embedding(9, 4), nn.GRU(4, 4, batch_first=True), nn.Linear(4, 9)
    opt = torch.optim.SGD([*table.parameters(), *layer.parameters(), *out.parameters()], lr=0.1)
    for epoch in range(3):
        x, y = {0}
        logits = out(layer(table(x))[0])
        loss = {1}
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
_TWICE = "F.cross_entropy(logits[:, :-1].reshape(-1, 9), y[:, 1:].reshape(-1))"
_ONCE = "F.cross_entropy(logits.reshape(-1, 9), y.reshape(-1))"


@pytest.mark.parametrize(
    ("data", "loss"),
    [
        ("windows([0, 9, 20])", _TWICE),
        ("rows[:, :-1], rows[:, 1:]", _TWICE),
        ("next(iter(DataLoader(Texts(), batch_size=4)))", _TWICE),
        ("windows([0, 9, 20])", "F.cross_entropy(logits[:, :-1, :].transpose(1, 2), y[:, 1:].contiguous())"),
    ],
)
def test_targets_that_are_shifted_twice_are_named(tmp_path: Path, data: str, loss: str) -> None:
    (found,), _ = said(tmp_path, _SCRIPT.format(data, loss), "two steps later")
    assert "leaves out the first step of the targets" in found.text


@pytest.mark.parametrize(
    ("data", "loss"),
    [
        ("windows([0, 9, 20])", _ONCE),
        ("rows, rows", _TWICE),
        ("rows[:, 1:], rows[:, 1:]", _TWICE),
        ("rows[:, :-1], rows[:, 1:]", f"{_ONCE} + 0.3 * {_TWICE}"),
        ("windows([0, 9, 20])", f"F.cross_entropy(logits.transpose(1, 2), y) + {_TWICE}"),
        ("windows([0, 9, 20])", f"F.cross_entropy(logits[:, :-1].transpose(1, 2), y[:, :-1]) + {_TWICE}"),
        ("windows([0, 9, 20])", f"{_TWICE} - logits.log_softmax(2).gather(2, y[..., None]).mean()"),
    ],
)
def test_targets_that_are_shifted_once_are_left_alone(tmp_path: Path, data: str, loss: str) -> None:
    assert said(tmp_path, _SCRIPT.format(data, loss), "two steps later")[0] == []
