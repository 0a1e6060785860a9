"""Evaluates a fixed controller of a damped spring by residual gradients (Baird, 1995) in a deterministic simulator.

The true values are known from long roll-outs, so that the error of the learned value function can be measured.
"""
import math

import torch
import torch.nn as nn

SEED, DT, GAMMA, STEPS, BATCH = 4, 0.1, 0.8, 1500, 128
torch.manual_seed(SEED)


def controller(s):
    return (-1.2 * s[..., 0] - 0.4 * s[..., 1]).clamp(-1, 1)


def simulate(s):
    """One deterministic step of x'' = -x - 0.2 x' + u with the controller in the loop."""
    x, v = s[..., 0], s[..., 1]
    u = controller(s)
    v = v + DT * (-x - 0.2 * v + u)
    cost = x.pow(2) + 0.1 * v.pow(2) + 0.05 * u.pow(2)
    return torch.stack([x + DT * v, v], -1), -cost


def true_value(s, horizon=150):
    total, discount = torch.zeros(len(s)), 1.0
    for _ in range(horizon):
        s, r = simulate(s)
        total, discount = total + discount * r, discount * GAMMA
    return total


class Fourier(nn.Module):
    """Fixed random features; only the layers behind them are learned."""

    def __init__(self, n=64):
        super().__init__()
        self.register_buffer("freq", 0.7 * torch.randn(2, n))
        self.register_buffer("phase", 2 * math.pi * torch.rand(n))

    def forward(self, s):
        return torch.cat([s, torch.cos(s @ self.freq + self.phase)], -1)


class Value(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Fourier()
        self.net = nn.Sequential(nn.Linear(66, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, s):
        return self.net(self.features(s)).squeeze(-1)


def sample_states(n):
    return 3 * torch.rand(n, 2) - 1.5


value = Value()
optimizer = torch.optim.Adam(value.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
test = sample_states(1000)
truth = true_value(test)


def error():
    with torch.no_grad():
        return (value(test) - truth).pow(2).mean().sqrt().item()


print(f"spread of the true values {truth.std():.3f}, error before training {error():.3f}")
for step in range(STEPS):
    s = sample_states(BATCH)
    nxt, reward = simulate(s)
    residual = reward + GAMMA * value(nxt) - value(s)
    loss = residual.pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 500 == 0:
        print(f"step {step}  squared residual {loss.item():.5f}  error {error():.3f}")

final = error()
print(f"error after training {final:.4f} ({100 * final / truth.std():.1f} % of the spread)")
