"""Returns in the order from the last step to the first one, and sums of the rewards before a step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    net = torch.nn.Linear(3, 2)
    opt = torch.optim.Adam(net.parameters(), lr=0.1)
    def returns_of(rewards, gamma=0.9):
{function}
    for _ in range(3):
        log_ps, rewards, states = [], [], []
        for t in range(6):
            x = torch.randn(3)
            dist = torch.distributions.Categorical(logits=net(x))
            a = dist.sample()
            states.append(x)
            log_ps.append(dist.log_prob(a))
            rewards.append(float(a))
        {used}
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
BACK = """\
        running, returns = 0.0, []
        for r in reversed(rewards):
            running = r + gamma * running
            returns.append(running)
        return torch.tensor(returns)
"""
FORWARD = BACK.replace("reversed(rewards)", "rewards")
STORED = """\
        running, out = 0.0, torch.zeros(len(rewards))
        for t in range(len(rewards)):
            running *= gamma
            running += rewards[t]
            out[t] = running
        return out
"""
LISTED = BACK.replace("torch.tensor(returns)", "returns").replace("r + gamma * running", "running * gamma + r")
PRODUCT = "loss = -(torch.stack(log_ps) * returns_of(rewards)).sum()"
PAIRS = "w = torch.tensor(returns_of(rewards)); loss = -sum(p * r for p, r in zip(log_ps, w - w.mean()))"
VALUE = "loss = torch.nn.functional.mse_loss(net(torch.stack(states))[:, 0], returns_of(rewards))"
MOOD = """level, felt = 0.0, []
        for reward in rewards:
            level = reward + 0.7 * level
            felt.append(level)
        loss = torch.nn.functional.mse_loss(net(torch.stack(states))[:, 0], torch.tensor(felt))"""
WRONG = {
    "never turned": (BACK, PRODUCT, "puts the return of the last step first"),
    "a list, never turned": (LISTED, PAIRS, "puts the return of the last step first"),
    "forward": (FORWARD, PRODUCT, "runs from the first step on"),
    "forward, stored": (STORED, VALUE, "runs from the first step on"),
}
RIGHT = {
    "turned": (BACK.replace("(returns)", "(returns[::-1])"), PRODUCT),
    "a negative index": (
        BACK,
        "w, loss = returns_of(rewards), 0.0\n        for i in range(6):\n            loss -= log_ps[i] * w[-i - 1]",
    ),
    "an index that counts down": (
        BACK,
        f"back = len(rewards) - 1 - torch.arange(len(rewards)); {PRODUCT.replace('(rewards)', '(rewards)[back]')}",
    ),
    "an order that a file has": (
        BACK,
        f"order = torch.tensor([5, 4, 3, 2, 1, 0]); {PRODUCT.replace('(rewards)', '(rewards)[order]')}",
    ),
    "inserted": (BACK.replace("append(", "insert(0, "), PRODUCT),
    "both the other way": (BACK, PRODUCT.replace("(log_ps)", "([log_ps[5 - t] for t in range(6)])")),
    "states of the same loop": (
        BACK.replace("            returns.append(running)", "            returns.append(running); rewards.append(0.0)"),
        PRODUCT.replace("returns_of(rewards)", "returns_of(rewards[:6])"),
    ),
    "a series of data": (
        FORWARD.replace("in rewards", "in noise").replace("        running, ", "        noise = rewards; running, "),
        "x = returns_of(torch.randn(6).tolist()); loss = (net(torch.stack(states))[:, 0] - x).square().mean()",
    ),
    "a running mean": (FORWARD.replace("r + gamma * running", "(1 - gamma) * r + gamma * running"), PRODUCT),
    "a baseline": (FORWARD, PRODUCT.replace("* ", "* (torch.tensor(rewards) - ").replace("))", ")))")),
    "the last step first": (FORWARD, f"rewards = [rewards.pop(0)] + rewards; {PRODUCT}"),
    "no rewards": (
        FORWARD.replace("in rewards", "in gaps").replace("        running, ", "        gaps = rewards; running, "),
        PRODUCT,
    ),
    "a mood": (FORWARD, MOOD),
    "only shown": (FORWARD, "print(returns_of(rewards)); loss = -(torch.stack(log_ps) * torch.tensor(rewards)).sum()"),
}


@pytest.mark.parametrize("name", WRONG)
def test_returns_at_the_wrong_steps_are_named(tmp_path: Path, name: str) -> None:
    function, used, words = WRONG[name]
    found, _ = said(tmp_path, SCRIPT.format(function=function, used=used), words)
    assert len(found) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_returns_at_their_steps_are_not(tmp_path: Path, name: str) -> None:
    function, used = RIGHT[name]
    script = SCRIPT.format(function=function, used=used)
    assert not said(tmp_path, script, "puts the return of the last", "runs from the first step on")[0]
