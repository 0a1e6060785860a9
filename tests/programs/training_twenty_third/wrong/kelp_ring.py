"""Wasserstein GAN with gradient penalty (Gulrajani et al., 2017) on a ring of eight Gaussians."""
import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    noise_dim: int = 4
    width: int = 64
    batch: int = 128
    critic_steps: int = 3
    generator_steps: int = 250
    lr: float = 1e-3
    betas: tuple = (0.5, 0.9)
    gp_weight: float = 10.0
    seed: int = 11


def sample_ring(n):
    angle = 2 * math.pi * torch.randint(0, 8, (n,)) / 8
    centres = torch.stack([angle.cos(), angle.sin()], dim=1) * 2.0
    return centres + 0.1 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.noise_dim = cfg.noise_dim
        self.net = nn.Sequential(
            nn.Linear(cfg.noise_dim, cfg.width), nn.ReLU(),
            nn.Linear(cfg.width, cfg.width), nn.ReLU(),
            nn.Linear(cfg.width, 2),
        )

    def sample(self, n):
        return self.net(torch.randn(n, self.noise_dim))


class Critic(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, cfg.width), nn.LeakyReLU(0.2),
            nn.Linear(cfg.width, cfg.width), nn.LeakyReLU(0.2),
            nn.Linear(cfg.width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    grad = torch.autograd.grad(
        outputs=score, inputs=between, grad_outputs=torch.ones_like(score), retain_graph=True,
    )[0]
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def train(cfg):
    torch.manual_seed(cfg.seed)
    generator, critic = Generator(cfg), Critic(cfg)
    opt_g = torch.optim.Adam(generator.parameters(), lr=cfg.lr, betas=cfg.betas)
    opt_c = torch.optim.Adam(critic.parameters(), lr=cfg.lr, betas=cfg.betas)

    for step in range(cfg.generator_steps):
        for _ in range(cfg.critic_steps):
            real = sample_ring(cfg.batch)
            fake = generator.sample(cfg.batch).detach()
            wasserstein = critic(real).mean() - critic(fake).mean()
            penalty = gradient_penalty(critic, real, fake)
            critic_loss = -wasserstein + cfg.gp_weight * penalty
            opt_c.zero_grad()
            critic_loss.backward()
            opt_c.step()

        generator_loss = -critic(generator.sample(cfg.batch)).mean()
        opt_g.zero_grad()
        generator_loss.backward()
        opt_g.step()

        if step % 50 == 0 or step == cfg.generator_steps - 1:
            print(f"step {step:4d}  wasserstein {wasserstein.item():9.3f}  generator {generator_loss.item():9.3f}")
    return generator, critic


@torch.no_grad()
def coverage(generator, n=2000):
    """Share of samples that lie near a mode, and the number of modes that are hit at least once in 100."""
    points = generator.sample(n)
    angle = 2 * math.pi * torch.arange(8) / 8
    centres = torch.stack([angle.cos(), angle.sin()], dim=1) * 2.0
    distance, nearest = torch.cdist(points, centres).min(dim=1)
    close = distance < 0.4
    hits = torch.bincount(nearest[close], minlength=8)
    return close.float().mean().item(), int((hits > n // 100).sum())


if __name__ == "__main__":
    config = Config()
    generator, critic = train(config)
    near, modes = coverage(generator)
    print(f"near a mode {near:.2%}, modes covered {modes}/8")
