"""Log-probabilities of samples that go on through `tanh`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import math, torch, torch.nn.functional as F
    from torch.distributions import Normal
    net, critic = torch.nn.Linear(3, 4), torch.nn.Linear(5, 1)
    opt = torch.optim.Adam(net.parameters())
    x = torch.randn(32, 3)
    for _ in range(3):
        mu, width = net(x).chunk(2, 1)
        dist = Normal(mu, width.exp())
        u = dist.rsample()
        a = torch.tanh(u)
        value = critic(torch.cat([x, a], 1)).squeeze(1)
        lp = {density}
        loss = {loss}
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
LOSS = "(0.2 * lp - value).mean()"
WRONG = {
    "missing": ("dist.log_prob(u).sum(-1)", "no call computes the logarithm of the slope"),
    "added": ("dist.log_prob(u).sum(-1) + torch.log(1 - a ** 2 + 1e-6).sum(-1)", "minus this logarithm"),
    "added in the stable form": (
        "(dist.log_prob(u) + 2 * (math.log(2) - u - F.softplus(-2 * u))).sum(1)",
        "minus this logarithm",
    ),
    "over the batch": ("dist.log_prob(u).sum(1) - torch.log(1 - a.pow(2) + 1e-6).sum()", "in all 32 rows"),
    "over the first dimension": ("(dist.log_prob(u) - torch.log1p(-a * a + 1e-6).sum(0)).sum(1)", "in all 32 rows"),
}
RIGHT = {
    "subtracted": ("dist.log_prob(u).sum(-1) - torch.log(1 - a ** 2 + 1e-6).sum(-1)", LOSS),
    "the stable form": ("(dist.log_prob(u) - 2 * (math.log(2) - u - F.softplus(-2 * u))).sum(1)", LOSS),
    "an entropy": ("-dist.log_prob(u).sum(1) + torch.log(1 - a * a + 1e-6).sum(1)", "-(0.2 * lp + value).mean()"),
    "an inverse": ("(dist.log_prob(u) + torch.log(1 / (1 - a ** 2 + 1e-6))).sum(-1)", LOSS),
    "a divergence": ("(dist.log_prob(u) - Normal(0.0, 1.0).log_prob(u)).sum(1)", LOSS),
    "a divergence by one function": (
        "(lambda of: of(dist) - of(Normal(torch.zeros(2), torch.ones(2))))(lambda d: d.log_prob(u).sum(1))",
        LOSS,
    ),
    "a divergence of two in a loop": (
        "sum(sign * d.log_prob(u).sum(1) for sign, d in ((1, dist), (-1, Normal(torch.ones(2), torch.ones(2)))))",
        LOSS,
    ),
    "a divergence by hand": ("(dist.log_prob(u) + 0.5 * u ** 2).sum(1)", LOSS),
    "a score": ("dist.log_prob(u.detach()).sum(1)", "-(lp * value.detach()).mean()"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_another_density_is_named(kind: str, tmp_path: Path) -> None:
    density, words = WRONG[kind]
    [found], _ = said(tmp_path, SCRIPT.format(density=density, loss=LOSS), "the slope")
    assert words in found.text
    assert found.labels[0].span.line == 15


@pytest.mark.parametrize("kind", RIGHT)
def test_the_density_of_the_result_is_no_news(kind: str, tmp_path: Path) -> None:
    density, loss = RIGHT[kind]
    assert said(tmp_path, SCRIPT.format(density=density, loss=loss), "the slope")[0] == []
