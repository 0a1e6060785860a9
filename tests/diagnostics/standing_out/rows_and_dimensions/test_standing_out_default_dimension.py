"""Checks the sentence about calls that leave out `dim`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

STEPS = """\
import torch.nn.functional as F
net, out = nn.Linear(3, 6), nn.Linear(6, 1)
conv, words = nn.Conv1d(5, 4, 1), nn.Embedding(9, 3)
opt = torch.optim.SGD([*net.parameters(), *out.parameters(), *conv.parameters()], lr=0.01)
for _ in range(3):
    x = words(torch.randint(0, 9, (8, 5)))
    {}
    loss = loss.square().mean() + 0 * sum(p.sum() for p in conv.parameters())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "steps": "loss = out(F.normalize(net(x)))  #!",
    "heads": "loss = out(F.normalize(net(x).view(8, 5, 2, 3)).flatten(2))  #!",
    "scores": "x = torch.randn(8, 5, 3)\n"
    "    q = F.normalize(net(x)); loss = q @ net(x).transpose(1, 2) + out(net(x)).sum()  #!",
    "a module, the next steps": "alike = nn.CosineSimilarity(eps=1e-6); y = torch.randn(8, 6, 6)\n"
    "    loss = 1 - alike(y[:, 1:], net(y[:, :-1, :3])).mean() + out(net(x)).sum()  #!",
    "a teacher": "loss = out(net(x)).sum() - F.cosine_similarity(net(x), net(x).detach()).mean()  #!",
    "a partial": "from functools import partial; unit = partial(F.normalize, eps=1e-8)\n"
    "    loss = out(unit(net(x)))  #!",
    "data that a line writes to": "x = x[:, :4] + 0; x[:, 0] = 0.0; loss = out(F.normalize(net(x)))  #!",
    "an import": "from torch.nn.functional import normalize as unit\n    loss = out(unit(net(x)))  #!",
    "channels put last": "last = nn.Linear(4, 6, bias=False).requires_grad_(False)\n"
    "    loss = out(F.normalize(last(conv(x).mT)))  #!",
}
RIGHT = {
    "an angle to data": "loss = F.cosine_similarity(net(x), torch.randn(8, 5, 6)) + 0 * out(net(x)).sum()",
    "a module of that name": "normalize = nn.CosineSimilarity(dim=-1)\n"
    "    cosine_similarity = lambda a: a * normalize(a, a)[..., None]\n    loss = out(cosine_similarity(net(x)))",
    "a function of that name": "from functools import partial; normalize = partial(F.normalize, dim=-1)\n"
    "    loss = out(normalize(net(x)))",
    "over steps, on purpose": "q = F.normalize(net(x)); loss = q.transpose(1, 2) @ q + out(net(x)).sum()",
    "time of channels": "loss = out(F.normalize(net(conv(x))))",
    "other ranks": "bank = torch.randn(3, 1, 5, 6); a = F.cosine_similarity(net(x), bank); "
    "loss = a @ torch.randn(6, 2) + out(net(x)).sum()",
    "shares of the steps": "loss = out(F.normalize(net(x).relu(), p=1))",
    "along the time of several series": "x = torch.randn(8, 5, 3); loss = out(F.normalize(net(x).relu()))",
    "a dimension": "loss = out(F.normalize(net(x), dim=-1))",
    "by its place": "loss = out(F.normalize(net(x), 2, -1))",
    "a module for the features": "alike = nn.CosineSimilarity(dim=-1)\n"
    "    loss = out(net(x)).sum() - alike(net(x), net(x).detach()).mean()",
    "channels of two layers": "alike = nn.CosineSimilarity()\n"
    "    loss = out(net(x)).sum() - alike(conv(x), conv(x).detach()).mean()",
    "options": "O = dict(dim=-1)\n    loss = out(F.normalize(net(x), **O))",
    "rows": "loss = out(F.normalize(net(x[:, 0])))",
    "channels": "loss = F.normalize(conv(x)) + 0 * out(net(x)).sum()",
    "channels of a layer for vectors": "loss = F.normalize(net(x[:, 0]).view(8, 3, 2)) + 0 * out(net(x)).sum()",
    "channels moved": "loss = F.normalize(net(x).transpose(1, 2)) + 0 * out(net(x)).sum()",
}
WORDS = "has no `dim` and runs along dimension 1"


@pytest.mark.parametrize("name", WRONG)
def test_a_call_along_the_steps_is_named(tmp_path: Path, name: str) -> None:
    body = STEPS.format(WRONG[name])
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_other_calls_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, STEPS.format(RIGHT[name])) if WORDS in each.text] == []
