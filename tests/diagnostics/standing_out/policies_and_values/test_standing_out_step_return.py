"""Targets of several steps that discount the value behind them by a single step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    from collections import deque
    gamma, n, beta = 0.9, {n}, 0.9
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    memory, window = [], deque(maxlen=n)
    for step in range(20):
        x, reward = torch.randn(3), torch.randn(()).item()
        window.append((x, reward))
        if len(window) == n:
            {stored}
        if len(memory) < 4:
            continue
        x, total, after = zip(*memory[-4:])
        with torch.no_grad():
            value = net(torch.stack(after)).squeeze(1)
        target = {target}
        loss = (net(torch.stack(x)).squeeze(1) - target).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
SUM = "sum(gamma ** k * r for k, (_, r) in enumerate(window))"
STORED = f"total = {SUM}; memory.append((window[0][0], total, x))"
LOOP = """total = 0.0
            for k in range(n):
                total += gamma ** k * window[k][1]
            memory.append((window[0][0], total, x))"""
POWERS = """r = torch.tensor([r for _, r in window])
            memory.append((window[0][0], ((gamma ** torch.arange(n)) * r).sum().item(), x))"""
TARGET = "torch.tensor(total) + gamma * value"
NAMED = "rewards + gamma * value if (rewards := torch.tensor(total)) is not None else 0"
WRONG = {
    "a sum": (STORED, TARGET, 3),
    "a loop": (LOOP, NAMED, 3),
    "a tensor of powers": (POWERS, NAMED, 2),
}
RIGHT = {
    "the power": (STORED, NAMED.replace("gamma *", "gamma ** n *"), 3),
    "one step": (STORED, NAMED, 1),
    "only shown": (f"shown = {SUM}; memory.append((window[0][0], reward, x))", NAMED, 3),
    "a discount of its own": (LOOP.replace("total = 0.0", "total, last = 0.0, gamma; last *= gamma"), NAMED, 3),
    "one discount in a loop": (
        STORED,
        NAMED.replace("rewards + gamma * value", "rewards + gamma * behind").replace(
            "(rewards :=", "(behind := gamma * (gamma * value)) is not None and (rewards :="
        ),
        3,
    ),
    "a bonus whose weight is equal": (STORED, NAMED.replace("gamma *", "beta *"), 3),
    "a number that is equal": (STORED, NAMED.replace("gamma *", "0.9 *"), 3),
    "another number": (STORED, NAMED.replace("gamma *", "0.729 *"), 3),
    "set anew": (f"last = {SUM}; memory.append((window[0][0], reward, x)); reward = last", "gamma * value + reward", 3),
}
SHORT = """
    import torch
    GAMMA, N = 0.9, 3
    q = torch.nn.Linear(3, 2)
    opt = torch.optim.SGD(q.parameters(), lr=0.1)
    def evaluate():
        reward = 0.0
        for i in range(N):
            reward += GAMMA ** i * float(q(torch.randn(3)).argmax())
        return reward
    class Learner:
        def __init__(self, gamma):
            self.gamma = gamma
        def learn(self, obs, reward, behind):
            with torch.no_grad():
                value = q(behind).max(-1).values
                {made}
            loss = torch.nn.functional.mse_loss(q(obs).max(-1).values, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
    for _ in range(3):
        rewards, r = torch.rand(N, 16), torch.rand(16)
        total = sum(GAMMA ** i * rewards[i] for i in range(N))
        {used}
        r = evaluate()
"""
ONCE = "target = reward + GAMMA * value"
TOTAL = "Learner(GAMMA).learn(torch.randn(16, 3), total, torch.randn(16, 3))"
SHORT_RIGHT = {
    "an evaluation": (ONCE, TOTAL.replace("total", "r")),
    "a power of its own": (ONCE.replace("GAMMA", "self.gamma"), TOTAL.replace("(GAMMA)", "(gamma=0.729)")),
    "a loop": (f"for _ in range(N - 1): value = GAMMA * value\n                {ONCE}", TOTAL),
}


def test_a_total_that_a_call_gets_is_named(tmp_path: Path) -> None:
    found, _ = said(tmp_path, SHORT.format(made=ONCE, used=TOTAL), "multiplies the value behind")
    assert len(found) == 1


@pytest.mark.parametrize("name", SHORT_RIGHT)
def test_rewards_of_another_sum_or_discount_are_not(tmp_path: Path, name: str) -> None:
    made, used = SHORT_RIGHT[name]
    assert not said(tmp_path, SHORT.format(made=made, used=used), "multiplies the value behind")[0]


@pytest.mark.parametrize("name", WRONG)
def test_a_value_that_is_discounted_once_is_named(tmp_path: Path, name: str) -> None:
    stored, target, n = WRONG[name]
    found, _ = said(tmp_path, SCRIPT.format(stored=stored, target=target, n=n), "multiplies the value behind")
    assert len(found) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_a_value_that_is_discounted_by_its_steps_is_not(tmp_path: Path, name: str) -> None:
    stored, target, n = RIGHT[name]
    assert not said(tmp_path, SCRIPT.format(stored=stored, target=target, n=n), "multiplies the value behind")[0]
