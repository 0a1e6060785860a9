"""Adversarial training with one backward pass for both players (as in gradient-reversal code), on noisy 8-PSK symbols."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)

LATENT, BATCH, STEPS, R1 = 4, 128, 560, 1.0


def symbols(n):
    """Received symbols of a phase-shift keyed signal: eight points on a circle, with noise."""
    angle = torch.randint(8, (n,)) * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


class Flip(torch.autograd.Function):
    """Identity forwards; backwards the sign of the gradient changes."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Critic(nn.Module):
    def __init__(self, frequencies=16):
        super().__init__()
        self.register_buffer("basis", 2.0 * torch.randn(2, frequencies))
        self.net = mlp([2 * frequencies + 2, 64, 64, 1])

    def forward(self, x):
        waves = x @ self.basis
        return self.net(torch.cat([x, waves.sin(), waves.cos()], dim=1)).squeeze(1)


def report(x):
    """Mean distance to the nearest ideal symbol, and the share of the rarest symbol (ideal: 0.125)."""
    angle = torch.arange(8) * (2 * math.pi / 8)
    distance, nearest = torch.cdist(x, torch.stack([angle.cos(), angle.sin()], dim=1)).min(dim=1)
    return f"distance {distance.mean():.3f}, rarest {nearest.bincount(minlength=8).min() / len(x):.3f}"


gen, critic = mlp([LATENT, 64, 64, 2]), Critic()
gen_avg = copy.deepcopy(gen).requires_grad_(False)
optimizer = torch.optim.Adam([
    {"params": gen.parameters(), "lr": 2e-3},
    {"params": critic.parameters(), "lr": 2e-3},
], betas=(0.0, 0.99))

for step in range(STEPS):
    real = symbols(BATCH).requires_grad_(True)
    fake = gen(torch.randn(BATCH, LATENT))
    score_real = critic(real)
    score_fake = critic(Flip.apply(fake))
    adversarial = F.softplus(-score_real).mean() + F.softplus(score_fake).mean()
    slope, = torch.autograd.grad(score_real.sum(), real, create_graph=True)
    penalty = slope.pow(2).sum(dim=1).mean()
    loss = adversarial + 0.5 * R1 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for avg, p in zip(gen_avg.parameters(), gen.parameters()):
            avg.lerp_(p, 0.02)
    if step % 112 == 111:
        print(f"step {step + 1}  adversarial {adversarial.item():.3f}  penalty {penalty.item():.3f}  "
              f"{report(gen_avg(torch.randn(2000, LATENT)))}")

print(f"data: {report(symbols(2000))}")
