"""The last step of a recurrent layer that runs in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_SCRIPT = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    x, y = torch.randn(8, 5, 3), torch.randint(0, 2, (8,))
    layer, out = nn.{0}(3, 4, batch_first={1}, bidirectional=True), nn.LazyLinear(2)
    out(torch.zeros(1, {3}))
    opt = torch.optim.SGD([*layer.parameters(), *out.parameters()], lr=0.1)
    for _ in range(3):
        states, last = layer(x if {1} else x.transpose(0, 1))
        loss = nn.functional.cross_entropy(out({2}), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    ("layer", "is_first", "read"),
    [
        ("LSTM", True, "states[:, -1]"),
        ("GRU", True, "states[:, -1, :].relu()"),
        ("GRU", False, "nn.functional.dropout(states, 0.1)[-1]"),
    ],
)
def test_the_last_step_of_both_directions_is_named(tmp_path: Path, layer: str, is_first: bool, read: str) -> None:
    (found,), _ = said(tmp_path, _SCRIPT.format(layer, is_first, read, 8), "both directions")
    assert "takes the last of 5 time steps" in found.text


@pytest.mark.parametrize(
    ("read", "width"),
    [
        ("torch.cat([states[:, -1, :4], states[:, 0, 4:]], -1)", 8),
        ("torch.cat([states[:, -1], states[:, 0]], -1)", 16),
        ("torch.cat([last[-2], last[-1]], -1)", 8),
        ("torch.cat([states[:, -1], last[-1]], -1)", 12),
        ("(states * (states @ states[:, -1][..., None]).softmax(1)).sum(1)", 8),
        ("states[:, -1].chunk(2, -1)[0]", 4),
    ],
)
def test_what_has_both_ends_is_left_alone(tmp_path: Path, read: str, width: int) -> None:
    assert said(tmp_path, _SCRIPT.format("GRU", True, read, width), "both directions") == ([], [])
