"""Tests the sentence on batches that are mixed in one random order, with targets in another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    import torch.nn.functional as F
    from torch import nn
    torch.manual_seed(0)
    data, labels = torch.randn(60, 6), torch.randint(0, 3, (60,))
    net = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        i = torch.randperm(60)[:20]
        x, y, w = data[i], labels[i], 0.7
        p, q = torch.randperm(20), torch.randperm(20)
        r = torch.randperm(60) if step % 2 == 0 else r
        {mixed}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TWO = "out = net(x); loss = w * F.cross_entropy(out, y) + (1 - w) * F.cross_entropy(out, z)"
SOFT = "loss = -(t * net(x).log_softmax(1)).sum(1).mean()"
APART = {
    "two losses": f"x, z = w * x + (1 - w) * x[p], y[q]; {TWO}",
    "soft targets": f"t = F.one_hot(y, 3).float(); x = x.mul(w) + x[p] * (1 - w); t = w * t + (1 - w) * t[q]; {SOFT}",
    "a part": f"x = x.clone(); x[:, 2:4] = x[p][:, 2:4]; z = y[q]; {TWO}",
    "a batch in a third order": f"s = torch.randperm(20); x, y = x[s], y[s]; "
    f"x, z = w * x + (1 - w) * x[p], y[q]; {TWO}",
    "lerp": f"x, z = torch.lerp(x, x[p], 1 - w), y.index_select(0, q); {TWO}",
}
TOGETHER = {
    "two losses": f"x, z = w * x + (1 - w) * x[p], y[p]; {TWO}",
    "soft targets": f"t = F.one_hot(y, 3).float(); x, t = w * x + (1 - w) * x[p], w * t + (1 - w) * t[p]; {SOFT}",
    "shuffled before": f"x, y = x[q], y[q]; x, z = w * x + (1 - w) * x[p], y[p]; {TWO}",
    "no mix": f"z = y[q]; {TWO}",
    "one batch": "x, y = x[q], y[q]; x = x + x.std() * 0.1; x = w * x + (1 - w) * x[p]; "
    "loss = F.cross_entropy(net(x), y)",
    "batches of an epoch": "i = slice(20 * (step % 2), 20 * (step % 2) + 20); x, y = data[r][i], labels[r][i]; "
    "x = (x - x.mean()) / x.std(); x = w * x + (1 - w) * x[p]; loss = F.cross_entropy(net(x), y)",
    "inputs only": "x = w * x + (1 - w) * x[p]; loss = F.cross_entropy(net(x), y)",
}


@pytest.mark.parametrize("name", APART)
def test_targets_in_another_order_are_named(tmp_path: Path, name: str) -> None:
    found, _ = said(tmp_path, SCRIPT.format(mixed=APART[name]), "belong to other rows")
    assert len(found) == 1


@pytest.mark.parametrize("name", TOGETHER)
def test_targets_in_the_same_order_are_not_named(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, SCRIPT.format(mixed=TOGETHER[name]), "belong to other rows")[0] == []
