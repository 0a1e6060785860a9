"""Tests the sentence on pictures and targets that are turned round independently of each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import random
    import torch
    from torch import nn
    torch.manual_seed(0)
    random.seed(0)
    images = torch.randn(24, 1, 8, 8)
    masks = (images > 0.5).float()
    net, teacher = nn.Conv2d(1, 1, 3, padding=1), nn.Conv2d(1, 1, 3, padding=1).requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    def by_chance(t):
        return t.flip(-1) if random.random() < 0.5 else t
    def rows(t, coin):
        return torch.where(coin[:, None, None, None], torch.flip(t, (3,)), t)
    def some(t, coin):
        t = t.clone()
        t[coin] = t[coin].flip(-1)
        return t
    def toss():
        return torch.rand(4) < 0.5
    for step in range(24):
        i = torch.randperm(24)[:4]
        x, m = images[i], masks[i]
        {turned}
        loss = nn.functional.binary_cross_entropy_with_logits(net(x), m)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ALONE = {
    "batch": "x, m = by_chance(x), by_chance(m)",
    "items": "x, m = torch.stack([by_chance(t) for t in x]), torch.stack([by_chance(t) for t in m])",
    "where": "x, m = rows(x, toss()), rows(m, toss())",
    "mask": "x, m = some(x, toss()), some(m, toss())",
}
TOGETHER = {
    "coin": "x, m = (x.flip(-1), m.flip(-1)) if random.random() < 0.5 else (x, m)",
    "where": "coin = toss(); x, m = rows(x, coin), rows(m, coin)",
    "seeded": "torch.manual_seed(step); x = rows(x, toss()); torch.manual_seed(step); m = rows(m, toss())",
    "inputs": "x = by_chance(x)",
    "views": "a = random.random() < 0.5; x = x.flip(-1) if a else x; "
    "m = teacher(by_chance(m)).sigmoid(); m = by_chance(m)",
    "drawn for inputs": "x = rows(x, toss()); x, m = (x.flip(-2), m.flip(-2)) if step % 2 else (x, m)",
}


@pytest.mark.parametrize("name", ALONE)
def test_turns_by_two_chances_are_named(tmp_path: Path, name: str) -> None:
    found, _ = said(tmp_path, SCRIPT.format(turned=ALONE[name]), "by a chance of its own")
    assert len(found) == 1


@pytest.mark.parametrize("name", TOGETHER)
def test_turns_by_one_chance_are_not_named(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, SCRIPT.format(turned=TOGETHER[name]), "by a chance of its own")[0] == []
