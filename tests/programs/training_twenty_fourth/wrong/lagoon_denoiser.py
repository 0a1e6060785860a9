"""Denoising diffusion on a two-dimensional ring of blobs, with a small training set and a held-out set."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Settings:
    blobs: int = 8
    train: int = 256
    held_out: int = 2000
    steps: int = 50
    hidden: int = 96
    batch: int = 64
    epochs: int = 260
    lr: float = 2e-3
    seed: int = 7


def ring(n, blobs):
    angle = torch.randint(0, blobs, (n,)) * (2 * math.pi / blobs)
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.4 + 0.08 * torch.randn(n, 2)


class Schedule:
    def __init__(self, steps):
        t = torch.linspace(0, 1, steps + 1)
        bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
        self.steps = steps
        self.betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
        self.bar = torch.cumprod(1 - self.betas, 0)

    def diffuse(self, x, t, noise):
        bar = self.bar[t].unsqueeze(1)
        return bar.sqrt() * x + (1 - bar).sqrt() * noise


class NoiseNet(nn.Module):
    def __init__(self, hidden, frequencies=8):
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(frequencies) * math.pi / 32)
        self.net = nn.Sequential(
            nn.Linear(2 + 2 * frequencies, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, t):
        phase = t.unsqueeze(1) * self.freq
        return self.net(torch.cat([x, phase.sin(), phase.cos()], 1))


def denoising_loss(model, schedule, x):
    t = torch.randint(0, schedule.steps, (len(x),))
    noise = torch.randn_like(x)
    return (model(schedule.diffuse(x, t, noise), t) - noise).pow(2).mean()


@torch.no_grad()
def validate(model, schedule, x, seed=1234):
    """Held-out loss; the noise is the same in every check so that the curve is smooth."""
    model.eval()
    torch.manual_seed(seed)
    loss = denoising_loss(model, schedule, x).item()
    model.train()
    return loss


@torch.no_grad()
def sample(model, schedule, n):
    model.eval()
    x = torch.randn(n, 2)
    for i in reversed(range(schedule.steps)):
        eps = model(x, torch.full((n,), i))
        beta, bar = schedule.betas[i], schedule.bar[i]
        x = (x - beta / (1 - bar).sqrt() * eps) / (1 - beta).sqrt()
        if i > 0:
            x = x + beta.sqrt() * torch.randn_like(x)
    return x


def train(cfg):
    torch.manual_seed(cfg.seed)
    data, held_out = ring(cfg.train, cfg.blobs), ring(cfg.held_out, cfg.blobs)
    schedule, model = Schedule(cfg.steps), NoiseNet(cfg.hidden)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    for epoch in range(1, cfg.epochs + 1):
        total = 0.0
        for idx in torch.randperm(cfg.train).split(cfg.batch):
            loss = denoising_loss(model, schedule, data[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        decay.step()
        check = validate(model, schedule, held_out)
        if epoch % 52 == 0:
            print(f"epoch {epoch:3d}  train {total / cfg.train:.4f}  held-out {check:.4f}")
    return model, schedule, held_out


if __name__ == "__main__":
    cfg = Settings()
    model, schedule, held_out = train(cfg)
    radius = sample(model, schedule, 500).norm(dim=1)
    print(f"samples: radius {radius.mean():.3f} +- {radius.std():.3f}   data: {held_out.norm(dim=1).mean():.3f}")
