"""Checks the sentence about log-determinants of a flow with the wrong sign, or reduced otherwise than the density."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

from tensorlens.records.report import StandingOut

FLOW = """\
net, table = nn.Linear(2, 4), torch.randn(64, 4)
net.logs = nn.Parameter(torch.zeros(4))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
normal, mask = torch.distributions.Normal(0.0, 1.0), torch.tensor([1.0, 0.0])
for step in range(3):
    x = table[torch.randint(0, 64, (16,))]
    a, b = x.chunk(2, dim=1)
    s, t = net(a).chunk(2, dim=1)
    {}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DENSITY = "; z = torch.cat([a, b], 1); logp = {}\n    "
OWN = DENSITY.format("-0.5 * (z**2).sum(1)")
NORMAL = DENSITY.format("normal.log_prob(z).sum(1)")
MANY = DENSITY.format("torch.distributions.MultivariateNormal(torch.zeros(4), torch.eye(4)).log_prob(z)")
WRONG = {
    "the sign of the other direction": "b = (b - t) * torch.exp(-s)" + NORMAL + "loss = -(logp + s.sum(1)).mean()  #!",
    "subtracted": "b = b * s.exp() + t" + OWN + "loss = -(logp - s.sum(1)).mean()  #!",
    "by a sigmoid": "scale = (s + 2).sigmoid(); b = b * scale" + MANY + "loss = (scale.log().sum(1) - logp).mean()  #!",
    "divided": "b = (b - t) / s.exp()" + OWN + "total = 0.5 * z.pow(2).sum(1) - s.sum(1)  #!\n    loss = total.mean()",
    "a list of means": "b = b * s.exp() + t"
    + DENSITY.format(
        "torch.distributions.Independent(torch.distributions.Normal(torch.zeros(4), torch.ones(4)), 1).log_prob(z)"
    )
    + "loss = -(logp + torch.stack([s.flatten(1).mean(-1)]).sum(0)).mean()  #!",
    "a mean of all": "b = b * s.exp() + t" + NORMAL + "loss = -(logp + s.mean()).mean()  #!",
    "a product of its own": "b = torch.addcmul(t, b, s.exp())"
    + DENSITY.format("(-0.5 * z * z).sum(1)")
    + "loss = -(logp - s.sum(1)).mean()  #!",
    "computed again": "b = b * torch.exp(torch.tanh(s)) + t"
    + NORMAL
    + "volume = torch.tanh(s).mean(dim=1)  #!\n    loss = -(logp + volume).mean()",
    "a log of a sigmoid": "b = b * torch.sigmoid(s) + t"
    + OWN
    + "loss = -(logp + nn.functional.logsigmoid(s).mean(1)).mean()  #!",
    "one scale for all rows": "z = x * net.logs.exp()"
    + NORMAL.replace("torch.cat([a, b], 1)", "z")
    + "loss = -(logp + net.logs.mean()).mean()  #!",
    "a gradient that is asked for": "b = b * s.exp() + t" + NORMAL + "loss = -(logp + s.mean(1)).mean()  #!\n"
    "    torch.autograd.grad(loss, net.weight, retain_graph=True)",
    "a mean": "b = b * s.exp() + t" + NORMAL + "loss = -(logp + s.mean(1)).mean()  #!",
    "a sum over the rows": "b = b * s.exp() + t" + MANY + "loss = -(logp + s.sum()).mean()  #!",
}
RIGHT = {
    "the density": "b = b * s.exp() + t" + NORMAL + "loss = -(logp + s.sum(1)).mean()",
    "the other direction": "b = (b - t) * torch.exp(-s)" + OWN + "loss = -(logp - s.sum(1)).mean()",
    "all means": "b = b * s.exp()" + NORMAL + "loss = -(normal.log_prob(z).sum() + s.sum()) / len(x)",
    "one scale for all rows": "z = x * net.logs.exp() + net(a)" + NORMAL + "loss = -(logp + net.logs.sum()).mean()",
    "a normal prediction": "z = (b - t) * torch.exp(-s)\n    loss = (0.5 * z**2 + s).mean()",
    "a sample of a posterior": "z = t + s.exp() * torch.randn_like(s)\n    loss = (0.5 * z**2 - s).sum(1).mean()",
    "a penalty of the scale": "error = b * s.exp() - a\n    loss = (error**2).mean() + 0.01 * s.mean()",
    "an error": "gated = x * net.logs.exp()\n    loss = 0.5 * ((gated + net.bias - x)**2).sum() + 16 * net.logs.sum()",
    "an error of a row": "error = b * s.exp() + t - a"
    + OWN.replace("z**2", "error**2")
    + "loss = -(logp - s.sum(1)).mean()",
    "a log of a sigmoid": "b = b * torch.sigmoid(s) + t"
    + OWN
    + "loss = -(logp + nn.functional.logsigmoid(s).sum(1)).mean()",
    "a list": "b = b * torch.exp(torch.tanh(s)) + t"
    + DENSITY.format("(-0.5 * z * z).sum(1)")
    + "loss = -(logp + torch.stack([torch.tanh(s).sum(1)]).sum(0)).mean()",
    "a share of the whole": "b = b * s.exp() + t" + NORMAL + "loss = -(logp / 4 + s.sum(1) / 4).mean()",
    "a mask": "b = b * (s * mask).exp() + t" + OWN + "loss = -(logp + (s * mask).sum(1)).mean()",
}


WORDS = "log-de"


def _found(folder: Path, body: str) -> list[StandingOut]:
    return [each for each in sentences(folder, body) if WORDS in each.text]


@pytest.mark.parametrize("case", WRONG)
def test_a_log_determinant_is_named(tmp_path: Path, case: str) -> None:
    body = FLOW.format(WRONG[case])
    (found,) = _found(tmp_path, body)
    assert marked(body) in [label.span.line for label in found.labels]


@pytest.mark.parametrize("case", RIGHT)
def test_densities_are_left_alone(tmp_path: Path, case: str) -> None:
    assert [each.text for each in _found(tmp_path, FLOW.format(RIGHT[case]))] == []
