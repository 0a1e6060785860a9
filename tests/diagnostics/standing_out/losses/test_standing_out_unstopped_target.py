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
        "F.mse_loss(p1, z2) + F.mse_loss(p2, z1)",
        "(F.normalize(p1, dim=1) - F.normalize(z2, dim=1)).norm(dim=1).square().mean()",
        "(p1 - z2).pow(2).sum(1).sqrt().mean()",
        "F.pairwise_distance(z1, z2).mean()",
        "F.cosine_embedding_loss(p1, z2, torch.ones(16))",
        "1 - torch.einsum('nc,nc->n', F.normalize(p1, dim=1), z2 / z2.norm(dim=1, keepdim=True).expand_as(z2)).mean()",
        "-(lambda z: (z[:16] * z[16:]).sum(1).mean())(F.normalize(encoder(torch.cat([one, other])), dim=1))",
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
        "-F.mse_loss(p1, z2)",
        "F.mse_loss(p1, z2.detach())",
        "F.mse_loss(z1, 0.9 * z2 + data[index] @ torch.ones(6, 8))",
        "F.mse_loss(head(z1), F.one_hot(label[index], 3).float()) + F.mse_loss(z1, z2)",
        "F.mse_loss(z1, z2) - z1.var(0).mean()",
        "F.mse_loss(z1, z2 / z2.std(0))",
        "F.cosine_embedding_loss(p1, z2, (label[index] > 0) * 2.0 - 1)",
        "F.mse_loss(torch.autograd.grad(z1.sum(), params[0], create_graph=True)[0], params[0] @ torch.ones(6, 6))",
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


_BY_HAND = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
    weights = dict(net.named_parameters())
    for _ in range(3):
        x = torch.randn(16, 6)
        look = lambda x: torch.func.functional_call(net, weights, (x,))
        loss = F.mse_loss(look(x + 0.1), look(x)CUT)
        slopes = torch.autograd.grad(loss, list(weights.values()))
        STEP
"""
_STEPS = (
    "[w.data.sub_(0.1 * g) for w, g in zip(weights.values(), slopes)]",
    "weights = {k: (w - 0.1 * g).detach().requires_grad_() for (k, w), g in zip(weights.items(), slopes)}",
)


@pytest.mark.parametrize("step", _STEPS)
def test_a_target_is_named_where_the_script_steps_by_hand(tmp_path: Path, step: str) -> None:
    script = _BY_HAND.replace("STEP", step)
    assert len(said(tmp_path, script.replace("CUT", ""), "only makes two results alike")[0]) == 1
    assert said(tmp_path, script.replace("CUT", ".detach()"), "only makes two results alike")[0] == []
