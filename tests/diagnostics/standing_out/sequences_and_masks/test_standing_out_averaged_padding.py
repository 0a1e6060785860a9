"""Means over padded rows that count the padding."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_SCRIPT = """
    import torch
    from torch import nn
    import torch.nn.functional as F
    torch.manual_seed(0)
    PAD = 0
    lengths = torch.randint(2, 7, (8,))
    places = torch.arange(6)[None] < lengths[:, None]
    ids = torch.randint(1, 9, (8, 6)) * places
    table, out, tags = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 3), torch.randint(0, 3, (8, 6))
    opt = torch.optim.SGD([*table.parameters(), *out.parameters()], lr=0.1)
    for _ in range(3):
        mask = (ids != PAD).float()
        h = table(ids).tanh()
        {0}
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
_ROWS = "F.cross_entropy(out(pooled), tags[:, 0])"
_EACH = 'F.cross_entropy(out(h).transpose(1, 2), tags, reduction="none")'


@pytest.mark.parametrize(
    "lines",
    [
        f"pooled = (h * mask[..., None]).mean(1); loss = {_ROWS}",
        f"pooled = torch.mean(h.masked_fill(~places.unsqueeze(-1), 0.0), dim=1); loss = {_ROWS}",
        f"loss = ({_EACH} * mask).mean()",
        f"each = {_EACH}.reshape(-1) * places.reshape(-1); loss = each.mean()",
        f"each = torch.where(places, {_EACH}, torch.zeros(())); loss = each.mean(dim=-1).mean()",
    ],
)
def test_a_mean_that_counts_the_padding_is_named(tmp_path: Path, lines: str) -> None:
    (found,), _ = said(tmp_path, _SCRIPT.format(lines), "places of a row")
    assert "the more padding there is" in found.text


@pytest.mark.parametrize(
    "lines",
    [
        f"pooled = (h * mask[..., None]).mean(1) / mask.mean(1, keepdim=True); loss = {_ROWS}",
        f"pooled = F.layer_norm((h * mask[..., None]).mean(1), (4,)); loss = {_ROWS}",
        f"loss = ({_EACH} * mask).mean() / mask.mean()",
        f"loss = ({_EACH} * mask).sum(1).mean()",
        f"loss = ({_EACH} * (mask / mask.mean())).mean()",
        f"loss = ({_EACH} * mask).mean() * (mask.numel() / mask.sum().item())",
        f"tags = tags.masked_fill(torch.rand(8, 6) < 0.6, -100); loss = ({_EACH} * (tags != -100)).mean()",
        f"tags[:, :2] = -100; answer = tags.ne(-100).float(); loss = ({_EACH} * answer).mean()",
        f"keep = (tags != 1).float(); loss = ({_EACH} * keep).mean()",
    ],
)
def test_a_mean_of_what_is_not_padding_is_left_alone(tmp_path: Path, lines: str) -> None:
    assert said(tmp_path, _SCRIPT.format(lines), "places of a row") == ([], [])
