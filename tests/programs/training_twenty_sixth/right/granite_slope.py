"""Sharpness-aware minimisation of a noisy-label classifier; written from the two-step recipe in the paper."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Options:
    rho: float = 0.05
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-4
    epochs: int = 10
    batch: int = 50
    label_noise: float = 0.2
    seed: int = 29


class SharpnessAware:
    """Wraps an optimizer: climb to the worst nearby point, take the gradient there, step from the start."""

    def __init__(self, params, base, rho):
        self.params = list(params)
        self.base = base
        self.rho = rho
        self.offsets = None

    def _norm(self):
        return torch.stack([p.grad.norm() for p in self.params]).norm()

    @torch.no_grad()
    def climb(self):
        scale = self.rho / (self._norm() + 1e-12)
        self.offsets = [p.grad * scale for p in self.params]
        for p, e in zip(self.params, self.offsets):
            p.add_(e)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.offsets):
            p.sub_(e)
        self.offsets = None
        self.base.step()
        self.base.zero_grad()


def spirals(n, g):
    label = torch.randint(3, (n,), generator=g)
    radius = torch.rand(n, generator=g) * 2 + 0.3
    angle = radius * 1.8 + label * (2 * torch.pi / 3)
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return x + 0.06 * torch.randn(n, 2, generator=g), label


def flip_labels(y, share, g):
    flipped = torch.rand(len(y), generator=g) < share
    return torch.where(flipped, torch.randint(3, y.shape, generator=g), y)


def lift(x, freqs):
    """Random Fourier features make the spirals easier for a small network."""
    proj = x @ freqs
    return torch.cat([x, proj.sin(), proj.cos()], dim=1)


def set_momentum(model, value):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.momentum = value


def main():
    opt = Options()
    torch.manual_seed(opt.seed)
    g = torch.Generator().manual_seed(opt.seed)
    freqs = torch.randn(2, 16, generator=g)
    x, clean = spirals(1500, g)
    x_test, y_test = spirals(1000, g)
    x, x_test = lift(x, freqs), lift(x_test, freqs)
    y = flip_labels(clean, opt.label_noise, g)

    model = nn.Sequential(nn.Linear(34, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    base = torch.optim.SGD(model.parameters(), lr=opt.lr, momentum=opt.momentum, weight_decay=opt.weight_decay)
    sam = SharpnessAware(model.parameters(), base, opt.rho)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(base, opt.epochs)
    for epoch in range(opt.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x), generator=g).split(opt.batch):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            sam.climb()
            set_momentum(model, 0.0)  # batch statistics of the displaced network stay out of the running ones
            F.cross_entropy(model(x[idx]), y[idx]).backward()
            set_momentum(model, 0.1)
            sam.descend()
            total += loss.item() * len(idx)
        schedule.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch:2d}  train loss {total / len(x):.3f}  test accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
