"""Recurrent layers that begin with the state of other rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_SCRIPT = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    x, y = torch.randn(24, 5, 3), torch.randn(24, 4)
    cell, layer = nn.GRUCell(3, 4), nn.{0}(3, 4, batch_first=True)
    opt = torch.optim.SGD([*cell.parameters(), *layer.parameters()], lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle={1})

    def train(out, y):
        loss = (out - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

    def batches():
        order = torch.randperm(24)
        for start in range(0, 24, 8):
            index = order[start : start + 8]
            yield x[index], y[index]

    state = None
    for epoch in range(2):
        {2}
"""
_LAYER = "for a, b in {0}: out, state = layer(a, state); state = {1}; train(out[:, -1], b)"


@pytest.mark.parametrize(
    ("layer", "lines"),
    [
        ("GRU", _LAYER.format("batches()", "state.detach()")),
        ("LSTM", _LAYER.format("loader", "tuple(s.detach() for s in state)")),
        ("RNN", _LAYER.format("loader", "state.data.clone()")),
        (
            "GRU",
            """state = torch.zeros(8, 4)
        for a, b in batches():
            for t in range(5):
                state = cell(a[:, t], state)
            train(state, b)
            state = state.detach()""",
        ),
        (
            "GRU",
            """order = torch.randperm(24)
        for number in range(3):
            start = number * 8
            out, state = layer(x[order[start : start + 8]], state)
            state = state.detach()
            train(out[:, -1], y[order[start : start + 8]])""",
        ),
    ],
)
def test_a_state_of_other_rows_is_named(tmp_path: Path, layer: str, lines: str) -> None:
    (found,), _ = said(tmp_path, _SCRIPT.format(layer, True, lines), "left for another batch")
    assert "a shuffle has chosen the rows" in found.text


@pytest.mark.parametrize(
    ("is_shuffled", "lines"),
    [
        (True, _LAYER.format("loader", "None")),
        (False, _LAYER.format("loader", "state.detach()")),
        (True, "for a, b in loader: state = torch.zeros(8, 4); state = cell(a[:, 0], state); train(state, b)"),
        (
            True,
            """for a, b in batches():
            state = None
            for part in a.split(2, 1):
                out, state = layer(part, state)
                state = state.detach()
                train(out[:, -1], b)""",
        ),
        (
            True,
            """index, state = torch.randperm(24)[:8], None
        for t in range(0, 4, 2):
            out, state = layer(x[index, t : t + 2], state)
            state = state.detach()
            train(out[:, -1], y[index])""",
        ),
        (
            True,
            """order = torch.randperm(24)
        for start in range(0, 24, 8):
            state = None
            for t in range(0, 4, 2):
                rows = slice(start, start + 8)
                out, state = layer(x[order[start : start + 8]][:, t : t + 2], state)
                state = state.detach()
                train(out[:, -1], y[order[rows]])""",
        ),
        (
            True,
            """order, states = torch.randperm(24), [None] * 3
        for t in range(0, 4, 2):
            for n in range(3):
                out, state = layer(x[order[8 * n : 8 * n + 8], t : t + 2], states[n])
                states[n] = state.detach()
                train(out[:, -1], y[order[8 * n : 8 * n + 8]])""",
        ),
        (
            True,
            """pairs = DataLoader(TensorDataset(x, x.flip(1), y), batch_size=8, shuffle=True)
        for a, b, c in pairs:
            state = layer(a)[1]
            train(layer(b, state)[0][:, -1], c)""",
        ),
        (
            True,
            """second, order = x.flip(1), torch.randperm(24)
        for start in range(0, 24, 8):
            state = layer(x[order[start : start + 8]])[1]
            out, _ = layer(second[order[start : start + 8]], state)
            train(out[:, -1], y[order[start : start + 8]])""",
        ),
        (
            True,
            """order = torch.randperm(24)
        for n in range(3):
            part = lambda t: x[order[8 * n : 8 * n + 8], t : t + 2]
            out, _ = layer(part(2), layer(part(0))[1])
            train(out[:, -1], y[order[8 * n : 8 * n + 8]])""",
        ),
        (
            True,
            """order = torch.randperm(24)
        for n in range(3):
            out, _ = layer(x[order.split(8)[n], 2:], layer(x[order.split(8)[n], :2])[1])
            train(out[:, -1], y[order.split(8)[n]])""",
        ),
        (
            True,
            """chunks = [([a[:2], a[2:4]], b) for a, b in zip(x, y)]
        for parts, b in DataLoader(chunks, batch_size=8, shuffle=True):
            out, _ = layer(parts[1], layer(parts[0])[1])
            train(out[:, -1], b)""",
        ),
    ],
)
def test_a_state_of_the_same_rows_is_left_alone(tmp_path: Path, is_shuffled: bool, lines: str) -> None:
    assert said(tmp_path, _SCRIPT.format("GRU", is_shuffled, lines), "left for another batch")[0] == []
