"""Checks the sentence about copies of samples that are taken apart in another order."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

DRAWS = """\
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(8, 3)
    many = {}
    draws = net(many + torch.randn_like(many)).squeeze(-1)
    parts = {}
    loss = parts.logsumexp({}).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "repeat": DRAWS.format("x.repeat(5, 1)", "draws.view(8, 5)  #!", 1),
    "a list of copies": DRAWS.format("torch.cat([x] * 5)", "draws.view(8, 5)  #!", 1),
    "an index": DRAWS.format("x[torch.arange(8).repeat_interleave(5)]", "draws.view(5, 8)  #!", 0),
    "groups that are merged again": DRAWS.format(
        "x[:, None].expand(-1, 5, -1).flatten(0, 1)",
        "draws.unflatten(0, (5, 8))  #!\n    parts = (parts - parts.mean(0)).flatten()",
        0,
    ),
    "rewards without a graph": DRAWS.format(
        "x.repeat_interleave(5, 0)",
        "many.gather(1, torch.randint(0, 3, (40, 1)))[:, 0].unflatten(0, (5, 8))  #!\n"
        "    parts = (parts - parts.mean(0)).flatten() * draws",
        0,
    ),
    "rewards of drawn actions": DRAWS.format(
        "x.repeat(5, 1)",
        "(torch.distributions.Categorical(logits=many).sample() == 1).float().view(8, 5)  #!\n"
        "    parts = (parts - parts.mean(1, keepdim=True)).flatten() * draws",
        0,
    ),
    "interleave": DRAWS.format("torch.repeat_interleave(x, 5, dim=0)", "draws.view(5, 8)  #!", 0),
    "merged": DRAWS.format("torch.randn(8, 5, 3).reshape(40, 3)", "draws.view(5, 8)  #!", 0),
    "a mean for each row that is taken off": DRAWS.format(
        "x.repeat(5, 1)", "draws.view(8, 5)  #!\n    parts = torch.stack([row - row.mean() for row in parts])", 1
    ),
    "errors of another order": DRAWS.format("x.repeat(5, 1)", "draws.view(8, 5)  #!", 1).replace(
        "parts.logsumexp(1).mean()", "(parts - x[:, :1]).square().mean(1).mean()"
    ),
    "expand": DRAWS.format("x.unsqueeze(0).expand(5, 8, 3).reshape(-1, 3)", "draws.reshape(8, 5)  #!", 1),
}
RIGHT = {
    "groups that are merged again": DRAWS.format(
        "x[:, None].expand(-1, 5, -1).flatten(0, 1)",
        "draws.unflatten(0, (8, 5))\n    parts = (parts - parts.mean(1, keepdim=True)).flatten()",
        0,
    ),
    "rewards of drawn actions": DRAWS.format(
        "x.repeat_interleave(5, 0)",
        "(torch.distributions.Categorical(logits=many).sample() == 1).float().view(8, 5)\n"
        "    parts = (parts - parts.mean(1, keepdim=True)).flatten() * draws",
        0,
    ),
    "an index": DRAWS.format("x[torch.arange(8).repeat(5)]", "draws.view(5, 8)", 0),
    "a list of other rows": DRAWS.format("torch.cat([x * k for k in range(5)])", "draws.view(8, 5)", 1),
    "no rows at first": DRAWS.format("torch.cat([torch.empty(0, 3), torch.randn(40, 3)])", "draws.view(8, 5)", 1),
    "chunks": DRAWS.format("torch.randn(8, 5, 3).reshape(40, 3)", "draws.view(5, 8)", 0)
    .replace("    loss =", "    parts = parts.flatten()\n    loss =")
    .replace("logsumexp(0)", "logsumexp(-1)"),
    "copies of zeros": DRAWS.format("torch.zeros(8, 3).repeat(5, 1)", "draws.view(8, 5)", 1),
    "a sum over rows": DRAWS.format("x.repeat(5, 1)", "(draws[:, None] * torch.randn(40)).mean(0).view(8, 5)", 1),
    "repeat": DRAWS.format("x.repeat(5, 1)", "draws.view(5, 8)", 0),
    "interleave": DRAWS.format("torch.repeat_interleave(x, 5, dim=0)", "draws.view(8, 5)", 1),
    "expand": DRAWS.format("x.unsqueeze(1).expand(8, 5, 3).reshape(-1, 3)", "draws.reshape(8, 5)", 1),
    "merged": DRAWS.format("torch.randn(8, 5, 3).flatten(0, 1)", "draws.view(8, 5)", 1),
    "as many copies as samples": DRAWS.format("x.repeat(8, 1)", "draws.view(8, 8)", 1),
    "other rows": DRAWS.format("torch.randn(40, 3)", "draws.view(8, 5)", 1),
    "rows in other places": DRAWS.format(
        "x.repeat(5, 1)", "torch.zeros(40).index_add(0, torch.randperm(40), draws).view(8, 5)", 1
    ),
    "rows that are written": DRAWS.format(
        "x.repeat(5, 1)", "draws * 1\n    parts[:1] = 0.0\n    parts = parts.view(8, 5)", 1
    ),
    "copies of features": DRAWS.format("torch.randn(40, 3)", "draws.view(8, 5)", 1).replace(
        "torch.randn_like(many)", "torch.randn(8).repeat(5)[:3]"
    ),
    "samples of another order": DRAWS.format("torch.randn(40, 3)", "draws.view(8, 5)", 1)
    .replace("torch.randn_like(many)", "torch.linspace(1, 2, 8)[:, None].repeat(5, 1)")
    .replace("torch.randn(40", "data = torch.arange(120.0).view(40")
    .replace("view(40, 3)", "view(40, 3)"),
    "taken apart in both orders": DRAWS.format("x.repeat(5, 1)", "draws.view(8, 5)", 1) + "    draws.view(5, 8)\n",
    "a mean over all": DRAWS.format("x.repeat(5, 1)", "draws.square().view(8, 5)", 1).replace(
        "logsumexp(1)", "mean(1)"
    ),
    "minibatches": DRAWS.format("torch.randn(8, 5, 3).flatten(0, 1)", "draws.view(5, 8)", 1).replace(
        "parts.logsumexp(1).mean()", "sum((row - 1).square().mean() for row in parts) / 5"
    ),
    "copies of one row": DRAWS.format("x[:1].expand(8, 3).repeat(5, 1)", "draws.view(8, 5)", 1),
    "moved": DRAWS.format("x.repeat(5, 1)", "draws.view(5, 8).t().reshape(40).view(8, 5)", 1),
}
WORDS = "no row moves"


@pytest.mark.parametrize("name", WRONG)
def test_copies_that_are_mixed_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "of 40 rows" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_copies_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
