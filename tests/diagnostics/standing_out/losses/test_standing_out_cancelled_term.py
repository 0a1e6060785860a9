"""Checks the sentence about a term that the softmax over its row cancels."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

RETRIEVAL = """\
queries, items = nn.Linear(5, 6), nn.Linear(4, 6)
opt = torch.optim.Adam([*queries.parameters(), *items.parameters()], lr=0.01)
for _ in range(3):
    a, b = torch.randn(8, 5), torch.randn(8, 4)
    counts = torch.rand(8) + 0.1
    logits = queries(a) @ items(b).T
    logits = logits - counts.log()[:, None]  #!
    loss = nn.functional.cross_entropy(logits, torch.arange(8))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ATTENTION = """\
score, age, out = nn.Linear(4, 4), nn.Linear(1, 1), nn.Linear(4, 1)
opt = torch.optim.Adam([*score.parameters(), *age.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x, ages = torch.randn(8, 5, 4), torch.rand(8, 5)
    scores = score(x) @ x.transpose(1, 2)
    scores = scores + age(ages.unsqueeze(-1))  #!
    weights = torch.softmax(scores / 2, dim=-1)
    loss = out(weights @ x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DISTANCE = """\
net, c = nn.Linear(8, 4), nn.Parameter(torch.randn(5, 4))
opt = torch.optim.Adam([*net.parameters(), c], lr=0.01)
for _ in range(3):
    x = torch.randn(12, 8)
    z = net(x)
    d = z.square().sum(1, keepdim=True) - 2 * z @ c.T + c.square().sum(1)
    loss = nn.functional.cross_entropy(-0.5 * d, torch.randint(5, (12,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MASKED = """\
LOW = 1e9
net, out = nn.Linear(8, 24), nn.Linear(8, 1)
opt = torch.optim.Adam([*net.parameters(), *out.parameters()], lr=0.01)
for _ in range(3):
    x, valid = torch.randn(4, 6, 8), torch.arange(6)[None] < torch.tensor([6, 5, 4, 3])[:, None]
    q, k, v = net(x).chunk(3, -1)
    s = q @ k.transpose(1, 2) + (~valid)[:, None, :].float() * -1e9
    s = s + (~valid)[:, :, None].float() * -1e9
    o = out(s.softmax(-1) @ v).squeeze(-1)
    loss = ((o - x.sum(-1)) ** 2 * valid).sum() / valid.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a correction of the query": RETRIEVAL,
    "in place": RETRIEVAL.replace("logits = logits - counts", "logits -= counts"),
    "before a temperature": RETRIEVAL.replace("cross_entropy(logits,", "cross_entropy(logits / 0.1,"),
    "before a mask": RETRIEVAL.replace(
        "cross_entropy(logits,", "cross_entropy(logits.masked_fill(torch.zeros(8, 8) > 0, float('-inf')),"),
    "before a mask of -inf": RETRIEVAL.replace(
        "cross_entropy(logits,", "cross_entropy(logits.masked_fill(torch.zeros(8, 8) > 0, -torch.inf),"),
    "a trained bias of the query": ATTENTION,
    "by log_softmax": ATTENTION.replace("torch.softmax(scores / 2, dim=-1)", "scores.log_softmax(2).exp()"),
}  # fmt: skip
RIGHT = {
    "a correction of the item": RETRIEVAL.replace("[:, None]", "[None, :]"),
    "a bias of the key": ATTENTION.replace("age(ages.unsqueeze(-1))", "age(ages.unsqueeze(-1)).transpose(1, 2)"),
    "the softmax over queries": ATTENTION.replace("dim=-1", "dim=1"),
    "the maximum of each row": RETRIEVAL.replace("counts.log()[:, None]", "logits.amax(1, keepdim=True).detach()"),
    "the sum of the log": RETRIEVAL.replace("counts.log()[:, None]", "torch.logsumexp(logits, 1, keepdim=True)"),
    "scores that the loss uses again": RETRIEVAL.replace(
        "torch.arange(8))", "torch.arange(8)) + 0.1 * torch.logsumexp(logits, 1).mean()"),
    "scores in a square": RETRIEVAL.replace("cross_entropy(logits,", "cross_entropy(logits * logits,"),
    "scores in a power": RETRIEVAL.replace("cross_entropy(logits,", "cross_entropy(logits.square(),"),
    "scores in a denominator": RETRIEVAL.replace("cross_entropy(logits,", "cross_entropy(torch.tensor(2.0) / logits,"),
    "scores that a gate uses": RETRIEVAL.replace("cross_entropy(logits,", "cross_entropy(logits + logits.data.relu(),"),
    "a scale for each item": RETRIEVAL.replace("cross_entropy(logits,", "cross_entropy(logits * torch.rand(8),"),
    "a mask of zeros": RETRIEVAL.replace(
        "cross_entropy(logits,", "cross_entropy(logits.masked_fill(torch.zeros(8, 8) > 0, 0.0),"),
    "one number": RETRIEVAL.replace("counts.log()[:, None]", "counts.log().mean()"),
    "a term for each place": RETRIEVAL.replace("counts.log()[:, None]", "torch.rand(8, 8)"),
    "a squared distance": DISTANCE,
    "a squared distance that begins with the scores": DISTANCE.replace(
        "z.square().sum(1, keepdim=True) - 2 * z @ c.T + c.square().sum(1)",
        "2 * z @ c.T - z.square().sum(1, keepdim=True) - c.square().sum(1)"),
    "a log density": DISTANCE.replace(
        "z.square().sum(1, keepdim=True) - 2 * z @ c.T + c.square().sum(1)",
        "2.0 * (z @ c.T) - z.pow(2).sum(1, keepdim=True) - c.pow(2).sum(1)"),
    "a squared distance of data": DISTANCE.replace("z = net(x)", "z = x[:, :4]"),
    "a log sum of equal scores": DISTANCE.replace("z.square().sum(1, keepdim=True) - 2 * z @ c.T + c.square().sum(1)",
        "(z @ c.T) / 0.5 - torch.logsumexp((z @ c.T) / 0.5, 1, keepdim=True)"),
    "a bound of the row": DISTANCE.replace("z.square().sum(1, keepdim=True) - 2 * z @ c.T + c.square().sum(1)",
        "3 * (z @ c.T) - (z.norm(dim=1, keepdim=True) * c.norm(dim=1).max()).detach()"),
    "a mask of queries": MASKED,
    "a mask of queries that is inverted": MASKED.replace(
        "(~valid)[:, :, None].float() * -1e9", "-LOW * (1 - valid[:, :, None].float())"),
    "a mean": RETRIEVAL.replace("cross_entropy(logits, torch.arange(8))", "mse_loss(logits, torch.eye(8))"),
}  # fmt: skip
WORDS = "does not change the softmax"


@pytest.mark.parametrize("name", WRONG)
def test_a_term_that_the_softmax_cancels_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "by one number" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_term_that_changes_the_softmax_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
