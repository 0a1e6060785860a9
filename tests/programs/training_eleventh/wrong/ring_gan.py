"""Hinge-loss GAN on a ring of eight Gaussians, with an averaged generator for sampling."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)

MODES = 8
Z_DIM = 8
BATCH = 96


def sample_ring(n):
    k = torch.randint(MODES, (n,))
    angle = 2 * math.pi * k / MODES
    centers = torch.stack([angle.cos(), angle.sin()], 1) * 2.0
    return centers + 0.08 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(Z_DIM, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 2),
        )

    def forward(self, z):
        return F.hardtanh(self.net(z), -3.0, 3.0)


class Discriminator(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.LeakyReLU(0.2),
            nn.Linear(width, width), nn.LeakyReLU(0.2),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


@torch.no_grad()
def update_average(average, source, decay):
    for a, s in zip(average.parameters(), source.parameters()):
        a.lerp_(s, 1 - decay)


@torch.no_grad()
def evaluate(generator, n=2000):
    x = generator(torch.randn(n, Z_DIM))
    angle = 2 * math.pi * torch.arange(MODES) / MODES
    centers = torch.stack([angle.cos(), angle.sin()], 1) * 2.0
    dist, nearest = torch.cdist(x, centers).min(1)
    close = dist < 0.3
    share = torch.bincount(nearest[close], minlength=MODES) / n
    return (share > 0.02).sum().item(), close.float().mean().item(), dist.mean().item()


G = Generator()
D = Discriminator()
G_avg = copy.deepcopy(G).requires_grad_(False)
opt_g = torch.optim.Adam(G.parameters(), lr=1.5e-3, betas=(0.5, 0.99))
opt_d = torch.optim.Adam(D.parameters(), lr=1.5e-3, betas=(0.5, 0.99))

for step in range(1000):
    real = sample_ring(BATCH)
    fake = G(torch.randn(BATCH, Z_DIM))

    opt_g.zero_grad()
    opt_d.zero_grad()

    # generator: make the discriminator believe in the samples
    loss_g = -D(fake).mean()
    loss_g.backward()
    opt_g.step()
    update_average(G_avg, G, 0.98)

    # discriminator: tell data from the same samples
    loss_d = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake.detach())).mean()
    loss_d.backward()
    opt_d.step()

    if (step + 1) % 250 == 0:
        modes, quality, dist = evaluate(G_avg)
        print(f"step {step + 1}  loss_g {loss_g.item():.3f}  loss_d {loss_d.item():.3f}  "
              f"modes {modes}/{MODES}  close to a mode {quality:.2f}")

modes, quality, distance = evaluate(G_avg)
print(f"final: modes {modes}  quality {quality:.3f}  mean distance {distance:.3f}")
