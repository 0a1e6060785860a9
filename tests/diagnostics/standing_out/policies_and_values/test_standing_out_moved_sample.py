"""Log-probabilities of samples that a line has squashed before."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    from torch.distributions import Beta, Independent, Normal
    LIMIT = 1.0
    net, std = torch.nn.Linear(3, 2), torch.nn.Parameter(torch.ones(2))
    opt = torch.optim.Adam([*net.parameters(), std], lr=0.1)
    for _ in range(3):
        x = torch.randn(16, 3)
        dist = {dist}
        {drawn}
        {log_p}
        reward = -a.detach().square().sum(-1)
        loss = -(log_p.reshape(16, -1).sum(-1) * reward).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
NORMAL = "Normal(net(x), std.exp())"
LOG_P = "log_p = dist.log_prob(a)"
SQUASHED = "a = dist.sample().sigmoid()"
OLD = """with torch.no_grad():
            old = dist.log_prob(a)
        log_p = (Normal(net(x), std.exp()).log_prob(a) - old).exp()"""
WRONG = {
    "by the logistic function": (NORMAL, SQUASHED, LOG_P),
    "two variables": (f"Independent({NORMAL}, 1)", "a = torch.tanh(dist.rsample())", LOG_P),
    "squashed": (NORMAL, "a = dist.sample(); a = a.tanh()", LOG_P),
    "an old policy": (NORMAL, SQUASHED, OLD),
}
RIGHT = {
    "before": (NORMAL, "u = dist.sample(); a = u.clamp(-LIMIT, LIMIT)", "log_p = dist.log_prob(u)"),
    "a clamp that moves none": ("Normal(0.5 * net(x).tanh(), 0.05)", "a = dist.sample().clamp(-LIMIT, LIMIT)", LOG_P),
    "a wide clamp": (NORMAL, "a = dist.sample().clamp(-20, 20)", LOG_P),
    "a bounded support": (
        "Beta(net(x).exp() + 1, std.exp() + 1)",
        "a = dist.sample().clamp(1e-6, 1 - 1e-6)",
        LOG_P,
    ),
    "squashed before": (NORMAL, "u = dist.sample(); a = torch.tanh(u)", "log_p = dist.log_prob(u)"),
    "data of another policy": (
        NORMAL,
        "other = Normal(torch.zeros(16, 2), 1.0); a = other.sample().tanh()",
        LOG_P,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_density_of_a_moved_sample_is_named(tmp_path: Path, name: str) -> None:
    dist, drawn, log_p = WRONG[name]
    found, _ = said(tmp_path, SCRIPT.format(dist=dist, drawn=drawn, log_p=log_p), "takes the density at")
    assert len(found) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_the_density_of_the_sample_itself_is_not(tmp_path: Path, name: str) -> None:
    dist, drawn, log_p = RIGHT[name]
    assert not said(tmp_path, SCRIPT.format(dist=dist, drawn=drawn, log_p=log_p), "takes the density at")[0]
