"""Joint energy-based model: a classifier whose logits define p(x), negatives from SGLD with a replay buffer."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    classes: int = 3
    hidden: int = 64
    buffer: int = 1000
    sgld_steps: int = 8
    sgld_lr: float = 0.5
    sgld_noise: float = 0.01
    px_weight: float = 0.2
    iterations: int = 300
    batch: int = 64
    lr: float = 2e-3


def spirals(n, classes):
    y = torch.randint(0, classes, (n,))
    r = torch.rand(n) * 2 + 0.2
    angle = 2.0 * r + y.float() * 6.2832 / classes
    x = torch.stack([r * angle.cos(), r * angle.sin()], dim=1)
    return x + 0.05 * torch.randn(n, 2), y


class JEM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(2, cfg.hidden), nn.SiLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.SiLU(),
        )
        self.head = nn.Linear(cfg.hidden, cfg.classes)

    def forward(self, x):
        return self.head(self.features(x))

    def log_px(self, x):
        return self(x).logsumexp(dim=1)


class Sampler:
    def __init__(self, model, cfg):
        self.model = model
        self.cfg = cfg
        self.replay = torch.rand(cfg.buffer, 2) * 6 - 3

    def __call__(self, n):
        idx = torch.randint(0, self.replay.size(0), (n,))
        fresh = torch.rand(n, 2) * 6 - 3
        keep = (torch.rand(n, 1) > 0.05).float()
        x = keep * self.replay[idx] + (1 - keep) * fresh
        for p in self.model.features.parameters():
            p.requires_grad_(False)
        for _ in range(self.cfg.sgld_steps):
            x = x.detach().requires_grad_(True)
            grad = torch.autograd.grad(self.model.log_px(x).sum(), x)[0]
            x = x + self.cfg.sgld_lr * grad + self.cfg.sgld_noise * torch.randn_like(x)
        x = x.detach().clamp(-4, 4)
        self.replay[idx] = x
        return x


def train(cfg):
    model = JEM(cfg)
    sampler = Sampler(model, cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for it in range(cfg.iterations):
        x, y = spirals(cfg.batch, cfg.classes)
        loss = F.cross_entropy(model(x), y)
        if it >= 20:
            negatives = sampler(cfg.batch)
            log_px = model.log_px(x).mean() - model.log_px(negatives).mean()
            loss = F.cross_entropy(model(x), y) - cfg.px_weight * log_px
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 60 == 0:
            print(f"it {it} loss {loss.item():.3f}")
    return model, sampler, optimizer


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(0)
    model, sampler, optimizer = train(cfg)
    with torch.no_grad():
        x, y = spirals(1000, cfg.classes)
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
