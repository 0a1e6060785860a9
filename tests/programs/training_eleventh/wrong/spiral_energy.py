"""Energy-based model of a 2-d spiral: contrastive divergence with a replay buffer and Langevin sampling."""
import math

import torch
import torch.nn as nn

torch.manual_seed(5)
STEPS, BATCH, LANGEVIN = 220, 128, 15
STEP_SIZE, NOISE = 0.08, 0.05


def spiral(n):
    t = 0.5 + 2.2 * math.pi * torch.rand(n, 1).sqrt()
    xy = torch.cat([t * torch.cos(t), t * torch.sin(t)], dim=1) / 4.0
    return xy + 0.04 * torch.randn(n, 2)


class Energy(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class SampleBuffer:
    """Keeps old chains; a few of them are restarted from noise in every draw."""

    def __init__(self, size=2000, restart=0.05):
        self.data = 4 * torch.rand(size, 2) - 2
        self.restart = restart

    def draw(self, n):
        self.index = torch.randint(0, len(self.data), (n,))
        x = self.data[self.index].clone()
        fresh = torch.rand(n) < self.restart
        x[fresh] = 4 * torch.rand(int(fresh.sum()), 2) - 2
        return x

    def put(self, x):
        self.data[self.index] = x


def langevin(energy, x, steps=LANGEVIN):
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        energy(x).sum().backward()
        with torch.no_grad():
            x -= STEP_SIZE * x.grad.clamp(-1, 1)
            x += NOISE * torch.randn_like(x)
            x.clamp_(-2.5, 2.5)
        x.grad.zero_()
    return x.detach()


def coverage(samples, data, radius=0.15):
    d = torch.cdist(samples, data)
    precision = (d.min(dim=1).values < radius).float().mean().item()
    recall = (d.min(dim=0).values < radius).float().mean().item()
    return precision, recall


energy = Energy()
optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3, betas=(0.0, 0.999))
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=150, gamma=0.3)
buffer = SampleBuffer()

for step in range(STEPS):
    optimizer.zero_grad()
    real = spiral(BATCH)
    fake = langevin(energy, buffer.draw(BATCH))
    buffer.put(fake)

    e_real, e_fake = energy(real), energy(fake)
    contrast = e_real.mean() - e_fake.mean()
    reg = 0.1 * (e_real.pow(2).mean() + e_fake.pow(2).mean())
    loss = contrast + reg
    loss.backward()
    nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if (step + 1) % 50 == 0:
        print(f"step {step + 1}: contrast {contrast.item():+.3f}  reg {reg.item():.3f}")

held_out = spiral(500)
samples = langevin(energy, 4 * torch.rand(500, 2) - 2, steps=150)
precision, recall = coverage(samples, held_out)
with torch.no_grad():
    gap = (energy(4 * torch.rand(2000, 2) - 2).mean() - energy(held_out).mean()).item()
print(f"samples near the spiral {precision:.3f}  spiral covered {recall:.3f}  energy gap {gap:.3f}")
