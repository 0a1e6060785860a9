"""Energy-based model on two rings, trained by contrastive divergence with a replay buffer of samples (Du & Mordatch)."""
import math

import torch
import torch.nn as nn

torch.manual_seed(11)

BUFFER, BATCH, STEPS, LANGEVIN = 4000, 128, 260, 15
STEP_SIZE, NOISE, L2 = 0.1, 0.1, 0.05


def sample_rings(n):
    radius = torch.where(torch.rand(n) < 0.5, 0.8, 1.8)
    angle = 2 * math.pi * torch.rand(n)
    xy = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return xy + 0.06 * torch.randn(n, 2)


class Energy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.body(2 * x).squeeze(1)


class SampleBuffer:
    """Keeps the ends of old chains; one start in twenty is fresh noise."""

    def __init__(self, size):
        self.data = 4 * torch.rand(size, 2) - 2

    def draw(self, n):
        index = torch.randint(len(self.data), (n,))
        start = self.data[index].clone()
        fresh = torch.rand(n) < 0.05
        start[fresh] = 4 * torch.rand(int(fresh.sum()), 2) - 2
        return index, start

    def store(self, index, samples):
        self.data[index] = samples


def langevin(energy, start, steps=LANGEVIN):
    x = start.clone().requires_grad_(True)
    for _ in range(steps):
        x.grad = None
        energy(x).sum().backward()
        with torch.no_grad():
            x -= STEP_SIZE * x.grad.clamp(-2, 2)
            x += NOISE * torch.randn_like(x)
            x.clamp_(-2.5, 2.5)
    return x.detach()


def ring_distance(x):
    r = x.norm(dim=1)
    return torch.minimum((r - 0.8).abs(), (r - 1.8).abs()).mean().item()


energy = Energy()
buffer = SampleBuffer(BUFFER)
optimizer = torch.optim.Adam(energy.parameters(), lr=5e-3, betas=(0.5, 0.9))

for step in range(STEPS):
    optimizer.zero_grad()
    positive = sample_rings(BATCH)
    index, start = buffer.draw(BATCH)
    negative = langevin(energy, start)
    buffer.store(index, negative)

    e_pos, e_neg = energy(positive), energy(negative)
    contrast = e_pos.mean() - e_neg.mean()
    loss = contrast + L2 * (e_pos ** 2 + e_neg ** 2).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
    optimizer.step()

    if step % 80 == 0 or step == STEPS - 1:
        print(f"step {step:4d}  contrast {contrast.item():+.3f}  buffer to rings {ring_distance(buffer.data):.3f}")

samples = langevin(energy, 4 * torch.rand(1000, 2) - 2, steps=150)
test = sample_rings(1000)
with torch.no_grad():
    uniform = 4 * torch.rand(1000, 2) - 2
    gap = (energy(uniform).mean() - energy(test).mean()).item()
print(f"samples to rings {ring_distance(samples):.3f}  data to rings {ring_distance(test):.3f}")
print(f"energy of uniform noise minus energy of data {gap:+.3f}")
