"""Tests the sentence on batches of graphs whose edges are joined without the places of the graphs' nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    graphs = []
    for _ in range(12):
        n = int(torch.randint(4, 9, ()))
        graphs.append((torch.randn(n, 5), torch.randint(0, n, {pairs}), torch.randn(1)))
    net, head = nn.Linear(5, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
    for step in range(6):
        batch = [graphs[i] for i in torch.randperm(12)[:4].tolist()]
        x = torch.cat([g[0] for g in batch])
        firsts = torch.tensor([0] + [len(g[0]) for g in batch[:-1]]).cumsum(0)
        {edges}
        h = net(x)
        h = h + torch.zeros_like(h).index_add(0, to, {taken})
        loss = (head(h).mean() - torch.cat([g[2] for g in batch]).mean()) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
WRONG = {
    "rows": ("(2, 9)", "fr, to = torch.cat([g[1] for g in batch], dim=1)", "h[fr]"),
    "columns": ("(9, 2)", "fr, to = torch.cat([g[1] for g in batch]).t().contiguous()", "h.index_select(0, fr)"),
    "parts": ("(2, 9)", "e = torch.concat([g[1] for g in batch], -1); fr, to = e[0], e[1]", "h.relu()[fr]"),
}
RIGHT = {
    "added before": ("(2, 9)", "fr, to = torch.cat([g[1] + o for g, o in zip(batch, firsts)], dim=1)", "h[fr]"),
    "added after": (
        "(2, 9)",
        "fr, to = torch.cat([g[1] for g in batch], dim=1) + firsts.repeat_interleave(9)",
        "h[fr]",
    ),
    "in place": (
        "(2, 9)",
        "e = torch.cat([g[1] for g in batch], dim=1); e += firsts.repeat_interleave(9); fr, to = e",
        "h[fr]",
    ),
    "of a table": ("(2, 9)", "fr, to = torch.cat([g[1] for g in batch], dim=1)", "torch.ones(9, 8)[fr]"),
}
REPLAY = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    seen = [(torch.randn(1, 5), torch.randint(0, 3, (1,)), torch.randn(1)) for _ in range(12)]
    net = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(6):
        x, a, r = (torch.cat(part) for part in zip(*[seen[i] for i in torch.randperm(12)[:4].tolist()]))
        q = net(x)
        loss = (q.gather(1, a[:, None]).squeeze(1) - r).pow(2).mean() + q[:, a].mean() + q.index_select(1, a).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_numbers_of_columns_are_not_named(tmp_path: Path) -> None:
    assert said(tmp_path, REPLAY, "row numbers")[0] == []


@pytest.mark.parametrize("name", WRONG)
def test_joined_numbers_without_places_are_named(tmp_path: Path, name: str) -> None:
    pairs, edges, taken = WRONG[name]
    found, _ = said(tmp_path, SCRIPT.format(pairs=pairs, edges=edges, taken=taken), "row numbers of 4 parts")
    assert len(found) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_numbers_with_their_places_are_not_named(tmp_path: Path, name: str) -> None:
    pairs, edges, taken = RIGHT[name]
    assert said(tmp_path, SCRIPT.format(pairs=pairs, edges=edges, taken=taken), "row numbers")[0] == []
