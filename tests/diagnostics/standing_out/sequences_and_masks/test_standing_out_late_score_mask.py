"""Masks of padding that multiply the weights of attention, or that are added to its scores."""

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
    table, out, tags = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 3), torch.randint(0, 3, (8,))
    opt = torch.optim.SGD([*table.parameters(), *out.parameters()], lr=0.1)
    for _ in range(3):
        mask = (ids != PAD).float()
        h = table(ids).tanh()
        scores = h @ h.transpose(1, 2)
        {0}
        loss = F.cross_entropy(out((w @ h)[:, 0]), tags)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "line",
    ["w = scores.softmax(-1) * mask[:, None]", "w = torch.softmax(scores / 2, dim=-1); w = places.unsqueeze(1) * w"],
)
def test_a_mask_after_the_softmax_is_named(tmp_path: Path, line: str) -> None:
    (found,), _ = said(tmp_path, _SCRIPT.format(line), "after the softmax", "sum below 1")
    assert "multiplies the weights" in found.text


def test_a_mask_of_padding_that_is_added_is_named(tmp_path: Path) -> None:
    (found,), _ = said(tmp_path, _SCRIPT.format("w = (scores + mask[:, None]).softmax(-1)"), "adds the zeros and ones")
    assert "each position still has a weight" in found.text


@pytest.mark.parametrize(
    "line",
    [
        "w = scores.masked_fill(mask[:, None] == 0, -1e9).softmax(-1) * mask[:, None]",
        "w = scores.softmax(-1) * mask[:, None]; w = w / w.sum(-1, keepdim=True)",
        "w = F.normalize(scores.softmax(-1) * mask[:, None], p=1, dim=-1)",
        "w = scores.softmax(-1) * mask[:, :, None]",
        "w = (scores + (1 - mask[:, None]) * -1e9).softmax(-1)",
        "w = (scores + mask[:, None].log()).softmax(-1)",
    ],
)
def test_a_mask_that_hides_is_left_alone(tmp_path: Path, line: str) -> None:
    assert said(tmp_path, _SCRIPT.format(line), "sum below 1", "adds the zeros") == ([], [])


_WRITTEN = _SCRIPT.replace("ids = torch", "{1}; ids = torch").replace("{0}", "w = (scores + {0}).softmax(-1)")
_ROWS = "made = torch.zeros(8, 6)\n    for i in range(8): made[i, :lengths[i]] = 1.0\n    made = made[:, None]"


@pytest.mark.parametrize(
    ("summand", "lines", "is_named"),
    [
        ("made", _ROWS, True),
        ("prior", "prior = torch.zeros(6, 6); prior[:, :2] = 1.0", False),
        ("prior", "prior = torch.zeros(1, 6); prior[:, :2] = 1.0", False),
        ("prior", "prior = torch.zeros(6, 6); k = 2; prior[:, :k] = 1.0", False),
        ("prior", "prior = torch.zeros(6, 6)\n    for i in range(6): prior[i, :i] = 1.0", False),
    ],
)
def test_a_prior_for_the_first_places_is_no_mask(tmp_path: Path, summand: str, lines: str, is_named: bool) -> None:
    found, _ = said(tmp_path, _WRITTEN.format(summand, lines), "adds the zeros and ones")
    assert bool(found) == is_named
