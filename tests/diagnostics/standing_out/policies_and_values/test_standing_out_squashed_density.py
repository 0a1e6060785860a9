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


FREE_ENERGY = """
    import torch, torch.nn.functional as F
    from torch.distributions import Normal
    enc, dec = torch.nn.Linear(8, 8), torch.nn.Linear(4, 8)
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-2)
    for _ in range(3):
        x = torch.randn(16, 8)
        mu, width = enc(x).chunk(2, 1)
        q = Normal(mu, (width / 2).exp())
        u = q.rsample()
        lp = q.log_prob(u).sum(1).mean()
        loss = {error} + 0.01 * {term}
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
ERROR = "F.mse_loss(dec(torch.tanh(u)), {})"


FREE_ENERGIES = {
    "a reconstruction": (ERROR.format("x"), "lp"),
    "a prior": (ERROR.format("torch.randn(16, 8)"), "(lp + 0.5 * (mu**2 + width.exp()).sum(1).mean())"),
    "labels": ("F.cross_entropy(dec(u.tanh()), torch.randint(0, 8, (16,)))", "lp"),
    "answers": ("((dec(torch.tanh(u)) - torch.randn(16, 8)) ** 2).mean()", "lp"),
}


@pytest.mark.parametrize("kind", FREE_ENERGIES)
def test_the_density_of_the_code_of_a_decoder_is_no_news(kind: str, tmp_path: Path) -> None:
    error, term = FREE_ENERGIES[kind]
    assert said(tmp_path, FREE_ENERGY.format(error=error, term=term), "the slope")[0] == []


BY_HAND = """
    import math, torch, torch.nn.functional as F
    from torch.distributions import Independent, Normal
    net, critic = torch.nn.Linear(3, 4), torch.nn.Linear(5, 1)
    opt = torch.optim.Adam(net.parameters())
    x = torch.randn(32, 3)
    for _ in range(3):
        mu, width = net(x).chunk(2, 1)
        std, noise = width.exp(), torch.randn_like(mu)
        dist = Independent(Normal(mu, std), 1)
        u = {sample}
        a, z = torch.tanh(u), (u - mu) / std
        lp = {density}
        cost = (a - 0.5 * x[:, :2]).square().sum(-1)
        loss = (0.2 * lp + cost).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
SAMPLE = "mu + std * noise"
LOGS = "2 * (math.log(2) - u - F.softplus(-2 * u))"
BY_HAND_WRONG = {
    "a product": (SAMPLE, f"(-0.5 * z * z - width - 0.5 * math.log(2 * math.pi)).sum(1) + ({LOGS}).sum(1)"),
    "the noise": (SAMPLE, "(-0.5 * noise**2 - width + (1 - a.square() + 1e-6).log()).sum(-1)"),
    "a ratio": (SAMPLE, "(-((u - mu) ** 2) / (2 * std**2) - std.log()).sum(1) + torch.log1p(-a * a + 1e-6).sum(1)"),
    "a negative": (SAMPLE, "-(0.5 * z.pow(2) + width + 2 * u.cosh().log()).sum(-1)"),
    "addcmul": ("torch.addcmul(mu, std, noise)", f"(-0.5 * z.square() - width).add({LOGS}).sum(1)"),
    "Independent": ("dist.rsample()", "dist.log_prob(u) + (1 - a.pow(2)).clamp(min=1e-6).log().sum(-1)"),
    "a sample by hand": (
        SAMPLE,
        "Normal(mu, std).log_prob(u).sum(1) + torch.log(1 - torch.tanh(u) ** 2 + 1e-6).sum(1)",
    ),
    "an action with a range": (SAMPLE, "dist.log_prob(u) + torch.log(3.0 * (1 - a**2) + 1e-6).sum(1)"),
    "missing": (SAMPLE, "(-0.5 * z * z - width).sum(1)"),
}


@pytest.mark.parametrize("kind", BY_HAND_WRONG)
def test_a_density_by_hand_is_named(kind: str, tmp_path: Path) -> None:
    sample, density = BY_HAND_WRONG[kind]
    found, _ = said(tmp_path, BY_HAND.format(sample=sample, density=density), "the slope")
    assert len(found) == 1


BY_HAND_RIGHT = {
    "a product": f"(-0.5 * z * z - width - 0.5 * math.log(2 * math.pi)).sum(1) - ({LOGS}).sum(1)",
    "the noise": "(-0.5 * noise**2 - width - (1 - a.square() + 1e-6).log()).sum(-1)",
    "a ratio": "(-((u - mu) ** 2) / (2 * std**2) - std.log()).sum(1) - torch.log1p(-a * a + 1e-6).sum(1)",
    "a negative": "-(0.5 * z.pow(2) + width - 2 * u.cosh().log()).sum(-1)",
    "an entropy": "-(width + (1 - a**2 + 1e-6).log()).sum(1)",
    "another square": "(0.5 * u**2 - 0.5 * z**2 - width).sum(1)",
    "no density": "(0.5 * (mu**2 + std**2) - width).sum(1)",
    "a transform": "(lambda d: d.log_prob(d.rsample()).sum(1))("
    "torch.distributions.TransformedDistribution(Normal(mu, std), torch.distributions.TanhTransform(cache_size=1)))",
    "a penalty of large actions": "(-0.5 * z * z - width - 2 * torch.log(1 - a**2 + 1e-6)).sum(1)",
}


@pytest.mark.parametrize("kind", BY_HAND_RIGHT)
def test_a_density_by_hand_of_the_result_is_no_news(kind: str, tmp_path: Path) -> None:
    script = BY_HAND.format(sample=SAMPLE, density=BY_HAND_RIGHT[kind])
    assert said(tmp_path, script, "the slope")[0] == []
