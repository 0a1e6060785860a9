"""Tests the sentence on samplers that are given a weight for each class in place of one for each sample."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import random
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
    torch.manual_seed(0)
    x = torch.randn(60, 6)
    y = (x[:, 0] > 0.8).long() + (x[:, 1] > 1.2).long()
    counts = torch.bincount(y, minlength=3).float()
    members = [torch.nonzero(y == c).flatten().tolist() for c in range(3)]
    centers = torch.randn(3, 6)
    net = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    def drawn():
        {drawn}
    for data, labels in drawn():
        loss = nn.functional.cross_entropy(net(data), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOADER = "return DataLoader(TensorDataset(x, y), batch_size=20, sampler=WeightedRandomSampler({weights}, len(x)))"
OWN = """class Rows(torch.utils.data.Dataset):
            def __len__(self): return {length}
            def __getitem__(self, number): return {item}
        return DataLoader(Rows(), batch_size=20, sampler=WeightedRandomSampler({weights}, len(x)))"""
ROWS = "for _ in range(3):\n            i = torch.multinomial({weights}, 20, replacement=True); yield {rows}"
CLASSES = {
    "loader": LOADER.format(weights="1 / counts"),
    "list": LOADER.format(weights="[1 / float((y == c).sum()) for c in range(3)]"),
    "own data set": OWN.format(length="60", item="x[number, :], y[number]", weights="1 / counts"),
    "rows": ROWS.format(weights="1 / counts", rows="x[i], y[i]"),
}
SAMPLES = {
    "episodes": OWN.format(
        length="3", item="x[20 * number : 20 * number + 20].mean(0), y[20 * number]", weights="[1.0, 1.0, 2.0]"
    ),
    "parts": OWN.format(length="3", item="x[slice(number, number + 4)].mean(0), 0", weights="[1.0, 1.0, 2.0]"),
    "a sample of a class": OWN.format(
        length="3", item="x[(i := random.choice(members[number]))], y[i]", weights="[1.0, 1.0, 2.0]"
    ),
    "a sample of a counted class": OWN.format(
        length="len(members)", item="x[members[number][random.randrange(2)]], number", weights="1 / counts"
    ),
    "loader": LOADER.format(weights="(1 / counts)[y]"),
    "rows": ROWS.format(weights="(1 / counts)[y]", rows="x[i], y[i]"),
    "of classes": ROWS.format(weights="counts", rows="centers[i] + 0.1 * torch.randn(20, 6), i"),
    "part": ROWS.format(weights="torch.ones(30)", rows="x[i], y[i]"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_weights_of_classes_are_named(tmp_path: Path, name: str) -> None:
    found, _ = said(tmp_path, SCRIPT.format(drawn=CLASSES[name]), "only the first 3 of 60 samples")
    assert len(found) == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_weights_of_samples_are_not_named(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, SCRIPT.format(drawn=SAMPLES[name]), "are ever drawn")[0] == []
