"""Energy model of two moons, trained with samples of short Langevin chains that persist in a pool.

The energy is pushed down at the data and up at the samples (Du and Mordatch, 2019); a small penalty on the size of the
energies keeps them near zero.
"""
import math

import torch
from torch import nn

BATCH = 64
POOL = 512
CHAIN = 12
STEP_SIZE = 0.05
FRESH = 0.05
STEPS = 100
PENALTY = 0.05


def moons(count):
    side = (torch.rand(count) < 0.5).float()
    angle = math.pi * torch.rand(count)
    x = angle.cos() + side
    y = torch.where(side > 0, 0.5 - angle.sin(), angle.sin())
    points = torch.stack([x - 0.5, y - 0.25], dim=1)
    return points + 0.08 * torch.randn(count, 2)


def uniform(count):
    return 4.0 * torch.rand(count, 2) - 2.0


class Energy(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        return self.net(x).squeeze(1)


class Pool:
    """End points of earlier chains, from which the next ones start."""

    def __init__(self):
        self.points = uniform(POOL)

    def draw(self, count):
        index = torch.randperm(POOL)[:count]
        start = self.points[index]
        fresh = torch.rand(count) < FRESH
        start[fresh] = uniform(int(fresh.sum()))
        return start, index

    def put(self, index, points):
        self.points[index] = points


def langevin(energy, start, steps):
    """Chains on the input of a fixed energy: the weights need no gradient here."""
    flags = [p.requires_grad for p in energy.parameters()]
    for p in energy.parameters():
        p.requires_grad_(False)
    x = start.clone().requires_grad_(True)
    for _ in range(steps):
        x.grad = None
        energy(x).sum().backward()
        x.data.add_(x.grad.clamp(-2.0, 2.0), alpha=-STEP_SIZE)
        x.data.add_(torch.randn_like(x), alpha=0.05)
        x.data.clamp_(-2.5, 2.5)
    for p, flag in zip(energy.parameters(), flags):
        p.requires_grad_(flag)
    return x.detach()


torch.manual_seed(31)
energy, pool = Energy(), Pool()
optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3, betas=(0.0, 0.999))

for step in range(STEPS):
    data = moons(BATCH)
    start, index = pool.draw(BATCH)
    samples = langevin(energy, start, CHAIN)
    pool.put(index, samples)

    low, high = energy(data), energy(samples)
    contrast = low.mean() - high.mean()
    loss = contrast + PENALTY * (low.pow(2) + high.pow(2)).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
    optimizer.step()
    if (step + 1) % 25 == 0:
        print(f"step {step + 1:4d}  data {low.mean().item():7.3f}  samples {high.mean().item():7.3f}")

with torch.no_grad():
    inside, outside = energy(moons(500)).mean().item(), energy(uniform(500)).mean().item()
print(f"energy of new points {inside:.3f}, of the whole square {outside:.3f}")
print(f"weights trained: {sum(p.numel() for p in energy.parameters() if p.requires_grad)}")
