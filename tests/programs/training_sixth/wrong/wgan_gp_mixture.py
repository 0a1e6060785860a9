"""WGAN-GP on a ring of two-dimensional Gaussians."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    latent: int = 8
    hidden: int = 64
    batch: int = 128
    iterations: int = 150
    n_critic: int = 3
    gp_weight: float = 10.0
    lr: float = 5e-4
    seed: int = 1


def ring(n, modes=8, radius=2.0, std=0.05):
    k = torch.randint(0, modes, (n,)).float()
    angle = 2 * math.pi * k / modes
    centers = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return centers + std * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.latent = cfg.latent
        self.net = nn.Sequential(
            nn.Linear(cfg.latent, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, 2),
        )

    def forward(self, n):
        return self.net(torch.randn(n, self.latent))


class Critic(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, cfg.hidden), nn.LeakyReLU(0.2),
            nn.Linear(cfg.hidden, cfg.hidden), nn.LeakyReLU(0.2),
            nn.Linear(cfg.hidden, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    scores = critic(mixed)
    grads = torch.autograd.grad(
        outputs=scores,
        inputs=mixed,
        grad_outputs=torch.ones_like(scores),
        retain_graph=True,
    )[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


def critic_step(critic, generator, optimizer, cfg):
    real = ring(cfg.batch)
    with torch.no_grad():
        fake = generator(cfg.batch)
    wasserstein = critic(real).mean() - critic(fake).mean()
    penalty = gradient_penalty(critic, real, fake)
    loss = -wasserstein + cfg.gp_weight * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return wasserstein.item(), penalty.item()


def generator_step(critic, generator, optimizer, cfg):
    loss = -critic(generator(cfg.batch)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


cfg = Config()
torch.manual_seed(cfg.seed)
generator, critic = Generator(cfg), Critic(cfg)
opt_g = torch.optim.Adam(generator.parameters(), lr=cfg.lr, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=cfg.lr, betas=(0.0, 0.9))

history = []
for it in range(cfg.iterations):
    for _ in range(cfg.n_critic):
        w, gp = critic_step(critic, generator, opt_c, cfg)
    g_loss = generator_step(critic, generator, opt_g, cfg)
    history.append((w, gp, g_loss))
    if it % 50 == 0:
        print(f"it {it} wasserstein {w:.3f} penalty {gp:.3f}")
