"""Losses that only make two results of the same parameters alike, and train both."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

_SCRIPT = """
    import copy
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    data, label = torch.randn(64, 6), torch.randint(3, (64,))
    encoder = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
    predictor, head = nn.Linear(8, 8), nn.Linear(8, 3)
    slow = copy.deepcopy(encoder).requires_grad_(False)
    params = [*encoder.parameters(), *predictor.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(params, lr=0.1)

    def distance(p, z):
        return 2 - 2 * (F.normalize(p, dim=-1) * F.normalize(z, dim=-1)).sum(-1)

    def whitened(z):
        z = z - z.mean(0)
        cov = z.T @ z / (len(z) - 1) + 1e-3 * torch.eye(z.shape[1])
        return torch.linalg.solve_triangular(torch.linalg.cholesky(cov), z.T, upper=False).T

    for _ in range(2):
        for index in torch.randperm(64).split(16):
            one, other = data[index] + torch.randn(16, 6), data[index] + torch.randn(16, 6)
            z1, z2 = encoder(one), encoder(other)
            p1, p2 = predictor(z1), predictor(z2)
            loss = LOSS
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    "loss",
    [
        "-F.cosine_similarity(p1, z2, dim=-1).mean()",
        "-0.5 * (F.cosine_similarity(p1, z2).mean() + F.cosine_similarity(p2, z1).mean())",
        "(distance(p1, z2) + distance(p2, z1)).mean()",
        "1 - nn.CosineSimilarity(dim=1)(p1, z2).mean()",
        "-((label[index] == 1).float() * F.cosine_similarity(p1, z2)).mean()",
    ],
)
def test_a_target_with_a_graph_is_named(tmp_path: Path, loss: str) -> None:
    found = said(tmp_path, _SCRIPT.replace("LOSS", loss), "only makes two results alike")[0]
    assert len(found) == 1


@pytest.mark.parametrize(
    "loss",
    [
        "-F.cosine_similarity(p1, z2.detach(), dim=-1).mean()",
        "(distance(p1, slow(other)) + distance(p2, slow(one))).mean()",
        "F.cross_entropy(head(z1), label[index]) - F.cosine_similarity(p1, z2).mean()",
        "F.cosine_similarity(p1, z2).mean()",
        "1 - F.cosine_similarity(p1, data[index] @ torch.ones(6, 8)).mean()",
        "F.cosine_similarity(z1, z2.roll(1, 0)).mean() - F.cosine_similarity(z1, z2).mean()",
        "distance(whitened(p1), whitened(p2)).mean()",
        "distance((p1 - p1.mean(0)) / p1.std(0), (p2 - p2.mean(0)) / p2.std(0)).mean()",
        "distance(F.batch_norm(p1, None, None, training=True), F.batch_norm(p2, None, None, training=True)).mean()",
        "-F.cosine_similarity(p1.view(16, 2, 4), p2.view(16, 2, 4)).mean()",
        "-((label[index] * 2 - 1) * F.cosine_similarity(p1, z2)).mean()",
        "-(F.cosine_similarity(p1, z2) / (label[index] - 1.5)).mean()",
        "-F.cosine_similarity(p1, z2).mean() * (label[0] - 1)",
        "(lambda cos: 1 - (cos * cos).mean())(F.cosine_similarity(p1, z2))",
        "(z1.std(0) - 1).relu().mean() - F.cosine_similarity(z1, z2).mean()",
    ],
)
def test_other_targets_and_terms_that_keep_apart_are_not(tmp_path: Path, loss: str) -> None:
    assert said(tmp_path, _SCRIPT.replace("LOSS", loss), "only makes two results alike")[0] == []
