"""Energy-based model on spiral arms: contrastive divergence with a replay buffer and Langevin sampling."""
import math
import random

import torch
import torch.nn as nn

torch.manual_seed(5)
random.seed(5)


def spiral_arms(n):
    arm = torch.randint(0, 2, (n,)).float()
    r = 0.4 + 1.6 * torch.rand(n)
    angle = 1.5 * r + arm * math.pi
    pts = torch.stack([r * angle.cos(), r * angle.sin()], dim=1)
    return pts + 0.1 * torch.randn(n, 2)


class Energy(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.body(x).squeeze(-1) + 0.05 * x.pow(2).sum(-1)


class ReplayBuffer:
    """Chains that persist over the iterations; a few are restarted from noise each time."""

    def __init__(self, size, restart=0.05):
        self.chains = torch.rand(size, 2) * 5 - 2.5
        self.restart = restart

    def draw(self, n):
        index = torch.randint(0, len(self.chains), (n,))
        x = self.chains[index].clone()
        fresh = torch.rand(n) < self.restart
        x[fresh] = torch.rand(int(fresh.sum()), 2) * 5 - 2.5
        return x, index

    def put(self, x, index):
        self.chains[index] = x


def langevin(energy, x, steps, step_size=0.02):
    """Unadjusted Langevin dynamics on the current energy."""
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        energy(x).sum().backward()
        with torch.no_grad():
            x -= step_size * x.grad.clamp(-5, 5)
            x += math.sqrt(2 * step_size) * torch.randn_like(x)
            x.grad.zero_()
    return x.detach()


def separation(energy, data):
    """How often a data point has a lower energy than a uniform point (ranking accuracy)."""
    with torch.no_grad():
        uniform = torch.rand_like(data) * 5 - 2.5
        return (energy(data)[:, None] < energy(uniform)[None, :]).float().mean().item()


train_x, test_x = spiral_arms(4096), spiral_arms(1000)
energy = Energy()
buffer = ReplayBuffer(1000)
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3, betas=(0.5, 0.999))

for it in range(1, 301):
    optimizer.zero_grad()
    real = train_x[torch.randint(0, len(train_x), (128,))]
    start, index = buffer.draw(128)
    fake = langevin(energy, start, steps=12)
    buffer.put(fake, index)

    e_real, e_fake = energy(real), energy(fake)
    contrast = e_real.mean() - e_fake.mean()
    loss = contrast + 0.01 * (e_real.pow(2) + e_fake.pow(2)).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
    optimizer.step()

    if it % 100 == 0:
        print(f"iter {it}: contrast {contrast.item():+.3f}  ranking {separation(energy, test_x):.3f}")

final_ranking = separation(energy, test_x)
chains = langevin(energy, buffer.chains, steps=30)
nearest = torch.cdist(chains, test_x).min(dim=1).values.mean().item()
print(f"ranking accuracy {final_ranking:.3f}  distance of samples to data {nearest:.3f}")
