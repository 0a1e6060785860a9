"""Contrastive losses whose tables and partners a run has measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_SET_UP = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    data = torch.randn(64, 6)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def view(x):
        return x + 0.1 * torch.randn(x.shape)

    def loss_of(x):
        a, b = F.normalize(net(view(x)), dim=1), F.normalize(net(view(x)), dim=1)
"""
_LOOP = """
    for _ in range(2):
        for index in torch.randperm(64).split(16):
            loss = loss_of(data[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def _sentences(tmp_path: Path, body: str, *words: str) -> list[str]:
    lines = "".join(f"        {line}\n" for line in body.strip().split("\n"))
    return [each.text for each in said(tmp_path, _SET_UP + lines + _LOOP, *words)[0]]


_TABLES = {
    "einsum": (
        "one, other = torch.einsum('id,jd->ij', a, b) * 5, torch.einsum('jd,id->ij', b, a) * 5\n"
        "return F.cross_entropy(one, torch.arange(len(a))) + F.cross_entropy(other, torch.arange(len(a)))"
    ),
    "turned twice": (
        "one, other = a @ b.T * 5, b @ a.T * 5\nt = torch.arange(len(a))\nce = nn.CrossEntropyLoss()\n"
        "return torch.stack([ce(each, t) for each in (one, other.T)]).mean()"
    ),
    "sums": (
        "s = a.mm(b.t()) / 0.2\npos = s.diag()\nreturn (s.logsumexp(1) - pos).mean() + (s.T.logsumexp(0) - pos).mean()"
    ),
    "diagonals": "s = F.linear(a, b) * 5\nreturn -sum(s.log_softmax(d).diagonal().mean() for d in (1, -1))",
}
_OTHER_TABLES = {
    "both directions": "s = F.linear(a, b) * 5\nreturn -sum(s.log_softmax(d).diagonal().mean() for d in (1, 0))",
    "its own transpose": (
        "z = (a + b) / 2\ns, t = z @ z.T * 5, torch.arange(len(z))\n"
        "return F.cross_entropy(s, t) + F.cross_entropy(s.T, t)"
    ),
    "two targets": (
        "s, t = a @ b.T * 5, torch.arange(len(a))\n"
        "return 0.7 * F.cross_entropy(s, t) + 0.3 * F.cross_entropy(s, torch.randperm(len(a)))"
    ),
    "entropy": (
        "s, t = a @ b.T * 5, torch.arange(len(a))\np = s.log_softmax(1)\n"
        "return F.cross_entropy(s, t) + 0.1 * (p.exp() * p).sum(1).mean()"
    ),
}


@pytest.mark.parametrize("form", [*_TABLES, *_OTHER_TABLES])
def test_two_tables_with_the_same_values_are_named(tmp_path: Path, form: str) -> None:
    assert len(_sentences(tmp_path, (_TABLES | _OTHER_TABLES)[form], "one direction twice")) == (form in _TABLES)


_MINED = """z = F.normalize(net(x), dim=1)
y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
same, s, d = y[:, None] == y[None], z @ z.T, torch.cdist(z, z)
"""
_OWN_ROWS = {
    "similarity": "p = s.masked_fill(~same, -2.0).amax(1)\nreturn (1 - p + s.masked_fill(same, -2.0).amax(1)).mean()",
    "added": (
        "q = z.pow(2).sum(1)\ng = (q[:, None] + q[None] - 2 * z @ z.T).clamp(min=1e-9).sqrt()\n"
        "p, _ = (g + 1e5 * (~same).float()).min(0)\nreturn F.relu(p - d.masked_fill(same, 1e5).amin(1) + 1).mean()"
    ),
    "indices": (
        "with torch.no_grad():\n    p, n = s.masked_fill(~same, -2).argmax(1), s.masked_fill(same, -2).argmax(1)\n"
        "return F.triplet_margin_loss(z, z[p], z[n])"
    ),
}
_OTHER_ROWS = {
    "least similar": "p = s.masked_fill(~same, 2.0).amin(1)\nreturn (1 - p + s.masked_fill(same, -2.0).amax(1)).mean()",
    "without itself": (
        "p = s.masked_fill(~same | torch.eye(16).bool(), -2.0).amax(1)\n"
        "return (1 - p + s.masked_fill(same, -2.0).amax(1)).mean()"
    ),
    "greatest taken off": (
        "s = (5 * s).masked_fill(~same, -50)\np = (s - s.max(1, keepdim=True).values).exp()\n"
        "return F.mse_loss((p / p.sum(1, keepdim=True)) @ z, z)"
    ),
    "one of each label": (
        "same = torch.eye(16).bool()\np = (d - 1e5 * (~same).float()).max(1).values\n"
        "return F.relu(p - d.masked_fill(same, 1e5).amin(1) + 1).mean()"
    ),
}


@pytest.mark.parametrize("form", [*_OWN_ROWS, *_OTHER_ROWS])
def test_rows_that_choose_themselves_as_partners_are_named(tmp_path: Path, form: str) -> None:
    body = _MINED + (_OWN_ROWS | _OTHER_ROWS)[form]
    assert len(_sentences(tmp_path, body, "that of the row itself")) == (form in _OWN_ROWS)


_PAIRED = {
    "labels": (
        "z, y = torch.cat([a, b]), torch.arange(len(a)).repeat_interleave(2)\n"
        "p = (y[:, None] == y[None]).float() - torch.eye(len(z))\n"
        "return -(p * (5 * z @ z.T - 1e9 * torch.eye(len(z))).log_softmax(1)).sum(1).mean()"
    ),
    "gathered": (
        "z = F.normalize(net(torch.stack([view(x), view(x)]).view(2 * len(x), -1)), dim=1)\n"
        "s, i = torch.exp(torch.einsum('id,jd->ij', z, z)), torch.arange(len(z))\n"
        "p = s.gather(1, torch.where(i % 2 == 0, i + 1, i - 1)[:, None])[:, 0]\n"
        "return -(p / (s.sum(1) - s.diag())).log().mean()"
    ),
    "every second": (
        "z = F.normalize(net(view(x.repeat(2, 1))), dim=1)\np = (z[0::2] * z[1::2]).sum(1)\n"
        "return ((z @ z.T).fill_diagonal_(-9).logsumexp(1) - p.repeat_interleave(2)).mean()"
    ),
}
_PAIRED_RIGHT = {
    "labels": _PAIRED["labels"].replace("repeat_interleave", "repeat"),
    "gathered": _PAIRED["gathered"].replace("view(x)])", "view(x)], 1)"),
    "every second": _PAIRED["every second"].replace("x.repeat(2, 1)", "x.repeat_interleave(2, 0)"),
}


@pytest.mark.parametrize("form", _PAIRED)
@pytest.mark.parametrize("is_right", [False, True])
def test_measured_pairs_of_neighbours_are_named(tmp_path: Path, form: str, is_right: bool) -> None:
    body = (_PAIRED_RIGHT if is_right else _PAIRED)[form]
    assert len(_sentences(tmp_path, body, "rows 0 and 1")) == (not is_right)
