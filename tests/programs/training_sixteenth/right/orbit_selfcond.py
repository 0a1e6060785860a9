"""Diffusion of planar orbits with self-conditioning (Chen et al., 2023): x0-prediction, micro-batches, weight averaging."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)

POINTS, STEPS, MICRO, ACCUMULATE = 12, 30, 32, 4
SIZE = 2 * POINTS


def kepler_orbits(n):
    """Ellipses around the focus with random eccentricity and orientation, sampled in true anomaly."""
    anomaly = torch.linspace(0, 2 * math.pi, POINTS + 1)[:-1]
    ecc = 0.6 * torch.rand(n, 1)
    tilt = 2 * math.pi * torch.rand(n, 1)
    r = (1 - ecc.pow(2)) / (1 + ecc * anomaly.cos())
    xy = torch.stack([r * (anomaly + tilt).cos(), r * (anomaly + tilt).sin()], dim=-1)
    return xy.view(n, SIZE)


class Denoiser(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.time = nn.Embedding(STEPS, 32)
        self.inp = nn.Linear(2 * SIZE + 32, hidden)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.out = nn.Sequential(nn.LayerNorm(hidden), nn.SiLU(), nn.Linear(hidden, SIZE))

    def forward(self, x, t, guess):
        h = self.inp(torch.cat([x, guess, self.time(t)], dim=1))
        return self.out(h + self.mid(h))


alpha_bar = torch.cos(torch.linspace(0, 1, STEPS + 1)[1:] * math.pi / 2 * 0.98).pow(2)


def training_loss(model, x0):
    t = torch.randint(0, STEPS, (len(x0),))
    a = alpha_bar[t].unsqueeze(1)
    x_t = a.sqrt() * x0 + (1 - a).sqrt() * torch.randn_like(x0)
    guess = torch.zeros_like(x0)
    if torch.rand(()) < 0.5:
        with torch.no_grad():
            guess = model(x_t, t, guess)
    weight = (a / (1 - a)).clamp(max=5.0)
    return (weight * (model(x_t, t, guess) - x0).pow(2)).mean()


@torch.no_grad()
def ddim(model, n):
    x, guess = torch.randn(n, SIZE), torch.zeros(n, SIZE)
    for step in reversed(range(STEPS)):
        guess = model(x, torch.full((n,), step), guess)
        a = alpha_bar[step]
        eps = (x - a.sqrt() * guess) / (1 - a).sqrt()
        previous = alpha_bar[step - 1] if step > 0 else torch.ones(())
        x = previous.sqrt() * guess + (1 - previous).sqrt() * eps
    return x


def nearest_distance(orbits):
    """Mean distance to the nearest of many true orbits."""
    return torch.cdist(orbits, reference).min(dim=1).values.mean().item()


train_x, reference = kepler_orbits(4096), kepler_orbits(4096)
model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)

updates, optimizer_steps, running = 1200, 0, 0.0
optimizer.zero_grad()
for it in range(1, updates + 1):
    loss = training_loss(model, train_x[torch.randint(0, len(train_x), (MICRO,))])
    (loss / ACCUMULATE).backward()
    running += loss.item()
    if it % ACCUMULATE:
        continue
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    optimizer_steps += 1
    decay = min(0.98, (1 + optimizer_steps) / (10 + optimizer_steps))
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 1 - decay)
    if it % 300 == 0:
        print(f"step {optimizer_steps}: loss {running / 300:.4f}  sample distance {nearest_distance(ddim(average, 200)):.3f}")
        running = 0.0
print(f"noise level of comparison {nearest_distance(torch.randn(200, SIZE)):.3f}, true orbits {nearest_distance(kepler_orbits(200)):.3f}")
