"""Contrastive losses: rows compared with themselves, neighbours as partners, queued positives, one direction twice."""

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


_OWN = ["also with itself"]


@pytest.mark.parametrize(
    "body",
    [
        (
            "z = torch.cat([a, b])\nn = len(a)\nsim = z @ z.T / 0.2\n"
            "return F.cross_entropy(sim, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))"
        ),
        (
            "z = torch.cat([a, b])\nlogp = torch.mm(z, z.t()).mul(5.0).log_softmax(dim=1)\n"
            "target = (torch.arange(len(z)) + len(a)) % len(z)\nreturn -logp[torch.arange(len(z)), target].mean()"
        ),
        (
            "z = torch.stack([a, b], 1).flatten(0, 1)\nsim = torch.einsum('id,jd->ij', z, z) / 0.2\n"
            "return F.cross_entropy(sim, torch.arange(len(z)) ^ 1)"
        ),
        (
            "z = torch.cat([net(view(x)), net(view(x))])\nz = z / z.norm(dim=1, keepdim=True)\n"
            "return F.nll_loss(F.log_softmax(z @ z.T / 0.5, dim=-1), torch.arange(len(z)).roll(len(a)))"
        ),
        (
            "z = torch.cat([net(view(x)), net(view(x))])\ns = F.cosine_similarity(z[:, None], z[None], dim=-1) / 0.5\n"
            "return F.cross_entropy(s, torch.cat([torch.arange(len(a)) + len(a), torch.arange(len(a))]))"
        ),
    ],
)
def test_a_row_among_its_own_negatives_is_named(tmp_path: Path, body: str) -> None:
    (text,) = _sentences(tmp_path, body, *_OWN)
    assert "the diagonal of" in text


@pytest.mark.parametrize(
    "body",
    [
        (
            "z = torch.cat([a, b])\nn = len(a)\nsim = (z @ z.T / 0.2).masked_fill(torch.eye(2 * n).bool(), -1e9)\n"
            "return F.cross_entropy(sim, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))"
        ),
        (
            "z = torch.cat([a, b])\nsim = z @ z.T / 0.2\nsim.fill_diagonal_(float('-inf'))\n"
            "return F.cross_entropy(sim, (torch.arange(len(z)) + len(a)) % len(z))"
        ),
        (
            "z = torch.cat([a, b])\nsim = z @ z.T / 0.2 - 1e9 * torch.eye(len(z))\n"
            "return F.cross_entropy(sim, torch.arange(len(z)).roll(len(a)))"
        ),
        "return F.cross_entropy(a @ b.T / 0.2, torch.arange(len(a)))",
        (
            "w = F.normalize(net[2].weight, dim=1)\n"
            "return F.cross_entropy(w @ w.T, torch.arange(len(w))) + F.cross_entropy(a @ b.T, torch.arange(len(a)))"
        ),
    ],
)
def test_a_row_that_is_masked_or_meant_as_its_own_partner_is_not(tmp_path: Path, body: str) -> None:
    assert _sentences(tmp_path, body, *_OWN, "rows 0 and 1", "twice") == []


@pytest.mark.parametrize(
    "body",
    [
        (
            "z = torch.cat([a, b])\nsim = z @ z.T / 0.2\nsim.fill_diagonal_(float('-inf'))\n"
            "return F.cross_entropy(sim, torch.arange(len(z)) ^ 1)"
        ),
        (
            "x1, x2 = view(x), view(x)\nz = F.normalize(net(torch.cat([x1, x2], dim=0)), dim=-1)\n"
            "sim = torch.mm(z, z.t()).masked_fill(torch.eye(len(z)).bool(), -1e9) / 0.2\n"
            "return F.cross_entropy(sim, torch.bitwise_xor(torch.arange(len(z)), 1))"
        ),
    ],
)
def test_neighbours_of_joined_views_are_named(tmp_path: Path, body: str) -> None:
    (text,) = _sentences(tmp_path, body, "rows 0 and 1")
    assert "two views of 16 rows one after the other" in text


@pytest.mark.parametrize(
    "body",
    [
        (
            "z = torch.stack([a, b], 1).flatten(0, 1)\nsim = (z @ z.T / 0.2).masked_fill(torch.eye(32).bool(), -1e9)\n"
            "return F.cross_entropy(sim, torch.arange(len(z)) ^ 1)"
        ),
        (
            "even = F.normalize(net(view(data[:32].repeat_interleave(2, 0)[:16])), dim=1)\nz = torch.cat([even, a])\n"
            "sim = (z @ z.T / 0.2).masked_fill(torch.eye(len(z)).bool(), -1e9)\n"
            "return F.cross_entropy(sim, torch.arange(len(z)) ^ 1)"
        ),
        (
            "x = x.view(8, 2, 6) + 0.1 * torch.randn(8, 1, 6)\nx = x.flatten(0, 1)\n"
            "z = F.normalize(net(torch.cat([view(x), view(x)])), dim=1)\n"
            "sim = (z @ z.T / 0.2).masked_fill(torch.eye(len(z)).bool(), -1e9)\n"
            "return F.cross_entropy(sim, torch.arange(len(z)) ^ 1)"
        ),
    ],
)
def test_neighbours_of_one_sample_are_not(tmp_path: Path, body: str) -> None:
    assert _sentences(tmp_path, body, "rows 0 and 1") == []


_QUEUE = """
    import copy
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    data = torch.randn(64, 6)
    net = nn.Linear(6, 8)
    slow = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    queue = F.normalize(torch.randn(32, 8), dim=1)
    for step in range(6):
        x = data[torch.randint(64, (16,))]
        q, k = F.normalize(net(x), dim=1), F.normalize(slow(x + 0.1), dim=1)
        FIRST
        logits = torch.cat([POSITIVE, NEGATIVE], dim=1) / 0.1
        loss = F.cross_entropy(logits, torch.zeros(16, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        LAST
"""
_WRITE = "at = 16 * (step % 2); queue[at:at + 16] = k.detach()"
_JOIN = "queue = torch.cat([k, queue])[:32]"
_ROWS = ("(q * k).sum(1, keepdim=True)", "q @ queue.clone().T")
_EINSUM = ("torch.einsum('nc,nc->n', q, k).unsqueeze(-1)", "torch.einsum('nc,kc->nk', q, queue.clone().detach())")


@pytest.mark.parametrize("put", [_WRITE, _JOIN])
@pytest.mark.parametrize("products", [_ROWS, _EINSUM])
@pytest.mark.parametrize("is_wrong", [True, False])
def test_positives_that_are_queued_before_are_named(
    tmp_path: Path, put: str, products: tuple[str, str], is_wrong: bool
) -> None:
    script = _QUEUE.replace("POSITIVE", products[0]).replace("NEGATIVE", products[1])
    script = script.replace("FIRST", put if is_wrong else "pass").replace("LAST", "pass" if is_wrong else put)
    assert len(said(tmp_path, script, "is among the negatives")[0]) == int(is_wrong)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("s = a @ b.T * 5\nt = torch.arange(len(a))\nreturn (F.cross_entropy(s, t) + F.cross_entropy(s, t)) / 2", 1),
        (
            (
                "ce = nn.CrossEntropyLoss()\ns = a @ b.T * 5\nt = torch.arange(len(a))\nu = ce(s, t)\nv = ce(s, t)\n"
                "return 0.5 * u + 0.5 * v"
            ),
            1,
        ),
        ("s = a @ b.T * 5\nt = torch.arange(len(a))\nreturn (F.cross_entropy(s, t) + F.cross_entropy(s.T, t)) / 2", 0),
        (
            (
                "s = a @ b.T * 5\nt = torch.arange(len(a))\n"
                "return F.cross_entropy(s, t) + F.cross_entropy(s, t, label_smoothing=0.1)"
            ),
            0,
        ),
        (
            (
                "hard = nn.CrossEntropyLoss()\nsoft = nn.CrossEntropyLoss(label_smoothing=0.1)\ns = a @ b.T * 5\n"
                "t = torch.arange(len(a))\nreturn 0.5 * hard(s, t) + 0.5 * soft(s, t)"
            ),
            0,
        ),
        (
            (
                "s = a @ b.T * 5\nt = torch.arange(len(a))\n"
                "part = lambda e: F.cross_entropy(s, t, label_smoothing=e)\nreturn part(0.0) + part(0.1)"
            ),
            0,
        ),
        (
            (
                "t = torch.randint(0, 8, (8,))\nhard, soft = nn.CrossEntropyLoss(), nn.CrossEntropyLoss()\n"
                "out = net(view(x[:8]))\nreturn 0.5 * hard(out, t) + 0.5 * soft(out, t)"
            ),
            0,
        ),
        (
            (
                "w = F.normalize(net[2].weight[:, :8], dim=1)\nout, t = a[:8] @ w.T, torch.arange(8)\n"
                "return F.cross_entropy(out, t) + F.cross_entropy(out, t)"
            ),
            0,
        ),
        (
            (
                "s = a.matmul(b.T).log_softmax(1)\nt = torch.arange(len(a))\nnll = nn.NLLLoss()\n"
                "return nll(s, t) + nll(s, t)"
            ),
            1,
        ),
    ],
)
def test_one_direction_that_counts_twice_is_named(tmp_path: Path, body: str, count: int) -> None:
    assert len(_sentences(tmp_path, body, "twice:")) == count
