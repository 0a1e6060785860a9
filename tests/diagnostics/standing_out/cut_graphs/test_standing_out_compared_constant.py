"""Checks the sentence about scores without a graph that a ranking loss compares with others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MINED = """\
users, items = nn.Embedding(20, 4), nn.Embedding(30, 4)
opt = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=0.01)

@torch.no_grad()
def hardest(u):
    pool = torch.randint(0, 30, (8, 6))
    return (users(u)[:, None] * items(pool)).sum(-1).amax(1)

for _ in range(4):
    u, i = torch.randint(0, 20, (8,)), torch.randint(0, 30, (8,))
    negative = hardest(u)
    positive = (users(u) * items(i)).sum(-1)
    loss = nn.functional.softplus(negative - positive).mean()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOSS = "nn.functional.softplus(negative - positive).mean()"
WRONG = {
    "softplus": MINED,
    "logsigmoid": MINED.replace(LOSS, "-nn.functional.logsigmoid(positive - negative).mean()"),
    "a random one": MINED.replace("pool = torch.randint(0, 30, (8, 6))", "j = torch.randint(0, 30, (8,))").replace(
        "(users(u)[:, None] * items(pool)).sum(-1).amax(1)", "(users(u) * items(j)).sum(-1)"),
    "of several, expanded": MINED.replace(".amax(1)", ".topk(2, dim=1).values").replace(
        "(users(u) * items(i)).sum(-1)", "(users(u) * items(i)).sum(-1, keepdim=True).expand_as(negative)"),
    "of the same batch": MINED.replace("def hardest(u):", "def hardest(u, i):").replace(
        "hardest(u)\n", "hardest(u, i)\n").replace("    pool = torch.randint(0, 30, (8, 6))\n", "").replace(
        "(users(u)[:, None] * items(pool)).sum(-1).amax(1)", "(users(u) @ items(i).T - 9 * torch.eye(8)).amax(1)"),
    "a hinge": MINED.replace(LOSS, "torch.relu(negative - positive + 0.5).mean()"),
    "a ranking loss": MINED.replace(LOSS, (
        "nn.functional.margin_ranking_loss(positive, negative, torch.ones(8), margin=0.5)")),
    "a clamp of a sum": MINED.replace(LOSS, "torch.clamp(0.5 - positive + negative, min=0).mean()"),
    "a method": MINED.replace(LOSS, "(0.5 + negative - positive).clamp_min(0.0).mean()"),
    "a maximum": MINED.replace(LOSS, "torch.maximum(negative - positive + 0.5, torch.zeros(8)).mean()"),
    "the logarithm of a sigmoid": MINED.replace(LOSS, "-torch.log(torch.sigmoid(positive - negative) + 1e-8).mean()"),
    "written out": MINED.replace(LOSS, "torch.log1p(torch.exp(negative - positive)).mean()"),
}  # fmt: skip
RIGHT = {
    "with a graph": MINED.replace("@torch.no_grad()\n", ""),
    "chosen without one, and computed again": MINED.replace(
        "(users(u)[:, None] * items(pool)).sum(-1).amax(1)",
        "pool[torch.arange(8), (users(u)[:, None] * items(pool)).sum(-1).argmax(1)]").replace(
        "negative = hardest(u)", "negative = (users(u) * items(hardest(u))).sum(-1)"),
    "a target": MINED.replace(LOSS, "nn.functional.mse_loss(positive, negative)"),
    "detached by name": MINED.replace("@torch.no_grad()\n", "").replace("= hardest(u)", "= hardest(u).detach()"),
    "a change that is clipped": MINED.replace(LOSS, "torch.clamp(positive - negative, -0.2, 0.2).pow(2).mean()"),
    "a sum": MINED.replace(LOSS, "torch.clamp(positive + negative - 0.5, min=0).mean()"),
    "the greater one": MINED.replace(LOSS, "torch.maximum(positive - negative, positive).mean()"),
    "a sigmoid with a graph": MINED.replace("@torch.no_grad()\n", "").replace(
        LOSS, "-torch.log(torch.sigmoid(positive - negative) + 1e-8).mean()"),
    "a reference that is computed once": MINED.replace("negative = hardest(u)", "negative = start[u]").replace(
        "for _ in", "start = hardest(torch.arange(20).clamp(max=7)[:8]).repeat(3)\nfor _ in"),
    "a value before a change": MINED.replace("negative = hardest(u)", "with torch.no_grad():\n"
        "        negative = (users(u) * items(i)).sum(-1)").replace(
        "positive = (users(u) * items(i))", "positive = ((users(u) + 0.1 * torch.randn(8, 4)) * items(i))"),
    "of another model": MINED.replace("(users(u)[:, None] * items(pool))", "(old[u][:, None] * old[pool])").replace(
        "opt =", "old = torch.randn(30, 4)\nopt ="),
}  # fmt: skip
WORDS = "which is a constant, although it is computed from"


@pytest.mark.parametrize("name", WRONG)
def test_a_compared_constant_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "compares `positive` with `negative`" in found.text or "a sum" in name
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_comparisons_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
