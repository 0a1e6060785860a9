"""Checks the sentence about losses of a vector quantizer that scale down the error which trains the codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

from tensorlens.records.report import StandingOut

QUANTIZER = """\
F, table = nn.functional, torch.randn(64, 6)
enc, book, dec = nn.Linear(6, 4), nn.Embedding(8, 4), nn.Linear(4, 6)
opt = torch.optim.SGD([*enc.parameters(), *book.parameters(), *dec.parameters()], lr=0.01)
BETA = 0.25
code_weight = 0.5
for step in range(3):
    x = table[torch.randint(0, 64, (16,))]
    z = enc(x)
    index = torch.cdist(z, book.weight).argmin(1)
    q = book(index)
    {}
    loss = F.mse_loss(dec(z + (q - z).detach()), x) + extra
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "functions": "extra = F.mse_loss(z, q.detach()) + BETA * F.mse_loss(q, z.detach())  #!",
    "squares": "extra = (q - z.detach()).pow(2).mean() * BETA + (q.detach() - z).pow(2).mean()  #!",
    "a module": "mse = nn.MSELoss()\n    extra = BETA * mse(q, z.detach()) + mse(z, q.detach())  #!",
    "lengths": "far = lambda a, b: torch.linalg.vector_norm(a - b, dim=-1).square().mean()\n"
    "    extra = sum([0.25 * far(z.detach(), q), far(z, q.detach())])  #!",
    "reshaped": "frozen = z.view(4, 4, 4).clone().detach(); picked = q.view(4, 4, 4)\n"
    "    extra = F.smooth_l1_loss(picked, frozen).mul(0.25) + F.smooth_l1_loss(z, q.detach())  #!",
    "one-hot": "q = torch.mm(F.one_hot(index, 8).float(), book.weight)\n"
    "    terms = [F.mse_loss(q, z.data) / 4, F.mse_loss(z, q.data)]; extra = torch.stack(terms).sum()  #!",
    "a name": "commit_cost = {'a': 0.25}['a']\n"
    "    extra = commit_cost * F.mse_loss(q, z.detach()) + F.mse_loss(z, q.detach())  #!",
    "a usual number": "codebook_loss = F.mse_loss(q, z.detach())\n    commit = F.mse_loss(z, q.detach())\n"
    "    extra = 0.25 * codebook_loss + commit  #!",
    "without recording": "with torch.no_grad():\n        still, near = z.clone(), q.clone()\n"
    "    extra = BETA * (q - still).norm(dim=1).mean() + (z - near).norm(dim=1).mean()  #!",
    "named terms": "codebook = F.mse_loss(q.detach(), z); commitment = F.mse_loss(q, z.detach())\n"
    "    extra = codebook + 0.25 * commitment  #!",
}
RIGHT = {
    "functions": "extra = F.mse_loss(q, z.detach()) + BETA * F.mse_loss(z, q.detach())",
    "squares": "extra = (q - z.detach()).pow(2).mean() + BETA * (q.detach() - z).pow(2).mean()",
    "two weights": "extra = 0.5 * F.mse_loss(q, z.detach()) + 0.8 * F.mse_loss(z, q.detach())",
    "a weight of the codes": "extra = code_weight * F.mse_loss(q, z.detach()) + F.mse_loss(z, q.detach())",
    "a small weight": "codebook_loss = F.mse_loss(q, z.detach())\n"
    "    extra = 0.5 * codebook_loss + F.mse_loss(z, q.detach())",
    "reductions": "extra = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach(), reduction='sum')",
    "a module": "mse = nn.MSELoss()\n    extra = mse(q, z.detach()) + BETA * mse(z, q.detach())",
    "no choice": "q = dec.weight[:, 0].expand(4, 6)[:1, :4].expand(16, 4) * 2\n"
    "    extra = 0.25 * F.mse_loss(q, z.detach()) + F.mse_loss(z, q.detach())",
    "a usual weight of the codes": "code_share = 0.25\n"
    "    extra = code_share * F.mse_loss(q, z.detach()) + F.mse_loss(z, q.detach())",
    "a weight of both": "extra = 0.1 * (F.mse_loss(q, z.detach()) + F.mse_loss(z, q.detach()))",
}


def _found(folder: Path, body: str) -> list[StandingOut]:
    return [each for each in sentences(folder, body) if "trains the table of codes" in each.text]


@pytest.mark.parametrize("case", WRONG)
def test_a_scaled_error_of_the_codes_is_named(tmp_path: Path, case: str) -> None:
    body = QUANTIZER.format(WRONG[case])
    (found,) = _found(tmp_path, body)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("case", RIGHT)
def test_a_scaled_commitment_is_left_alone(tmp_path: Path, case: str) -> None:
    assert [each.text for each in _found(tmp_path, QUANTIZER.format(RIGHT[case]))] == []


def test_centres_of_clusters_that_move_slowly_are_left_alone(tmp_path: Path) -> None:
    body = QUANTIZER.format(WRONG["functions"])
    assert len(_found(tmp_path, body)) == 1
    assert _found(tmp_path, body.replace("dec(z + (q - z).detach())", "dec(z)")) == []
