"""Checks the sentence about errors that NumPy computes of answers (n, 1) and labels (n,)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_START = """
    import numpy as np
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = np.random.randn(40, 4).astype(np.float32), np.random.randn(40).astype(np.float32)
    for _ in range(2):
        loss = (net(torch.from_numpy(x)).squeeze(1) - torch.from_numpy(y)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    @torch.no_grad()
"""
_WHOLE = """
    def evaluate(x, y):
        pred = net(torch.from_numpy(x)).numpy()
        error = pred - y
        return np.sqrt(np.mean(error ** 2)), np.abs(error).mean()
    print(evaluate(x, y))
"""
_BATCHES = """
    def evaluate(rows, values):
        preds, targets = [], []
        for i in range(0, 40, 10):
            preds.append(net(rows[i:i + 10]).cpu().numpy())
            targets.append(values[i:i + 10].numpy())
        preds, targets = np.concatenate(preds), np.concatenate(targets)
        return np.mean((preds - targets) ** 2)
    print(evaluate(torch.from_numpy(x), torch.from_numpy(y)))
""".replace("preds, targets = np.concatenate(preds), np", "preds = np.concatenate(preds)\n        targets = np")
_WRONG = {
    "an error": _WHOLE,
    "an accuracy": _WHOLE.replace("error = pred - y", "hits = (pred > 0).astype(float) == y").replace(
        "np.sqrt(np.mean(error ** 2)), np.abs(error).mean()", "hits.mean()"
    ),
    "an error of batches": _BATCHES,
}
_RIGHT = {
    "one dimension": _WHOLE.replace(".numpy()", ".numpy().ravel()"),
    "flattened later": _WHOLE.replace("        error", "        pred = pred[:, 0]\n        error"),
    "labels of two dimensions": _WHOLE.replace("evaluate(x, y))", "evaluate(x, y[:, None]))"),
    "labels reshaped": _WHOLE.replace("        error", "        y = y.reshape(-1, 1)\n        error"),
    "a table for each answer": _WHOLE.replace("np.sqrt(np.mean(error ** 2))", "error.mean(axis=1)"),
    "a distance of all pairs": _WHOLE.replace(
        "        error", "        own = np.abs(pred - pred.T).mean()\n        error"
    ),
    "batches joined to rows": _BATCHES.replace(".cpu()", ".squeeze(1)"),
    "batches joined and flattened": _BATCHES.replace("np.concatenate(preds)", "np.concatenate(preds).ravel()"),
}


@pytest.mark.parametrize("name", _WRONG)
def test_an_error_of_all_pairs_is_named(tmp_path: Path, name: str) -> None:
    (found,) = said(tmp_path, _START + _WRONG[name].lstrip("\n"), "is of all pairs")[0]
    assert found.labels[0].span.line > 17


@pytest.mark.parametrize("name", _RIGHT)
def test_other_errors_are_left_alone(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, _START + _RIGHT[name].lstrip("\n"), "is of all pairs")[0] == []
