"""Tests the sentences on sums along the edges of a graph: one softmax for all edges, and rows added to themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    import torch.nn.functional as F
    from torch import nn
    torch.manual_seed(0)
    edges, x, y = torch.randint(0, 20, (2, 90)), torch.randn(20, 6), torch.randint(0, 3, (20,))
    base, score, head = nn.Linear(6, 8), nn.Linear(16, 1), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*base.parameters(), *score.parameters(), *head.parameters()], lr=0.1)
    for step in range(4):
        fr, to = edges
        h = base(x)
        zeros = torch.zeros_like(h)
        {message}
        loss = F.cross_entropy(head(h + out), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
E = "e = F.leaky_relu(score(torch.cat([h[fr], h[to]], 1)))"
ALL_EDGES = {
    "softmax": f"{E}.squeeze(1); out = zeros.index_add(0, to, e.softmax(0)[:, None] * h[fr])",
    "column": f"{E}; out = zeros.index_add_(0, to, h.index_select(0, fr) * torch.softmax(e, dim=0))",
    "by hand": f"{E}.exp(); a = e / e.sum(); out = zeros.scatter_add(0, to[:, None].expand(-1, 8), a * h[fr])",
}
OF_NODES = {
    "of each node": f"{E}.exp(); a = e / torch.zeros(20, 1).index_add(0, to, e)[to]; "
    "out = zeros.index_add(0, to, a * h[fr])",
    "divided afterwards": f"{E}; a = e.softmax(0); n = torch.zeros(20, 1).index_add(0, to, a) + 1e-9; "
    "out = zeros.index_add(0, to, a * h[fr]) / n",
    "of probabilities": f"{E}.squeeze(1); p = torch.zeros(20).index_add(0, to, e.softmax(0) * h[fr].sum(1).sigmoid()); "
    "out = zeros - torch.log(p + 1e-6)[:, None]",
    "of vectors of probabilities": f"{E}; p = zeros.index_add(0, to, e.softmax(0) * h[fr].softmax(1)); "
    "out = torch.log(p + 1e-6)",
    "of prototypes": f"{E}; out = F.normalize(zeros.index_add(0, to, e.softmax(0) * h[fr]), dim=1)",
    "of heads": f"{E}; a = (e * torch.ones(90, 4)).softmax(-1); "
    "out = zeros.index_add(0, to, (a[..., None] * h[fr].view(90, 4, 2)).flatten(1))",
}
OWN = {
    "same": "out = zeros.index_add_(0, fr, h[fr])",
    "layer": "out = zeros.index_add(0, to, base(x).index_select(0, to).relu())",
    "scaled by counts": "n = torch.zeros(20).index_add(0, fr, torch.ones(90)); "
    "out = zeros.index_add(0, to, h[to]) / n[fr].mean()",
    "wide": "out = zeros.scatter_add(0, fr[:, None].expand(-1, 8), h[edges[0]] if step < 0 else h[fr])",
}
OTHERS = {
    "the other": "out = zeros.index_add_(0, to, h[fr])",
    "laplacian": "out = zeros.index_add(0, fr, h[fr]); out = out.index_add(0, fr, -h[to])",
    "a matrix of the pair": "a = torch.zeros(20, 20).index_put((fr, to), torch.ones(90), accumulate=True); "
    "out = zeros.index_add(0, fr, h[fr]) - a @ h",
    "a first hop on the data": "hop = torch.zeros(20, 6).index_add(0, to, x[fr]); "
    "out = base(hop) + zeros.index_add(0, to, h[to])",
    "difference": "out = zeros.index_add(0, fr, h[fr] - h[to])",
}


@pytest.mark.parametrize("name", ALL_EDGES)
def test_softmax_of_all_edges_is_named(tmp_path: Path, name: str) -> None:
    found, _ = said(tmp_path, SCRIPT.format(message=ALL_EDGES[name]), "a sum of 1 together")
    assert len(found) == 1


@pytest.mark.parametrize("name", OF_NODES)
def test_softmax_of_each_node_is_not_named(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, SCRIPT.format(message=OF_NODES[name]), "a sum of 1 together")[0] == []


@pytest.mark.parametrize("name", OWN)
def test_rows_added_to_themselves_are_named(tmp_path: Path, name: str) -> None:
    found, _ = said(tmp_path, SCRIPT.format(message=OWN[name]), "only its own row")
    assert len(found) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_rows_added_to_others_are_not_named(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, SCRIPT.format(message=OTHERS[name]), "only its own row")[0] == []


MEASURED = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    enter, say, leave = nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 1)
    opt = torch.optim.Adam([*enter.parameters(), *say.parameters(), *leave.parameters()], lr=0.01)
    edge = torch.randint(0, 20, (2, 60))
    tail, head = edge[0], edge[1]
    for _ in range(3):
        x = torch.randn(20, 3)
        y = torch.zeros(20, 1).index_add(0, head, x[tail, :1])
        h = enter(x)
        agg = {message}
        loss = (leave(h + agg) - y).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
PUT = "torch.zeros_like(h).index_put(({to},), say(h.index_select(0, tail)) * 0.5, accumulate=True)"
REDUCED = "torch.zeros_like(h).scatter_reduce(0, {to}[:, None].expand(-1, 8), say(h[edge[0]]), reduce='mean')"


@pytest.mark.parametrize("form", [PUT, REDUCED])
@pytest.mark.parametrize("to", ["tail", "head"])
def test_sums_of_measured_rows(tmp_path: Path, form: str, to: str) -> None:
    found, _ = said(tmp_path, MEASURED.format(message=form.format(to=to)), "only its own row")
    assert len(found) == (to == "tail")
