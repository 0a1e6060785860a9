"""Decay constants of fluorescence curves: a network finds the rates, the amplitudes follow by linear least squares."""
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Setup:
    curves: int = 600
    points: int = 60
    rates: int = 2
    noise: float = 0.003
    ridge: float = 1e-4
    epochs: int = 30
    batch: int = 50
    lr: float = 3e-3
    seed: int = 29


def measure(n, cfg, gen):
    t = torch.linspace(0, 4, cfg.points)
    slow = 0.3 + 0.5 * torch.rand(n, 1, generator=gen)
    fast = 2.0 + 2.0 * torch.rand(n, 1, generator=gen)
    rates = torch.cat([slow, fast], 1)
    amplitude = 0.4 + torch.rand(n, 2, generator=gen)
    clean = (amplitude.unsqueeze(1) * torch.exp(-t.view(1, -1, 1) * rates.unsqueeze(1))).sum(2)
    return t, clean + cfg.noise * torch.randn(clean.shape, generator=gen), rates


class RateNet(nn.Module):
    def __init__(self, cfg, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.points, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, cfg.rates))
        self.register_buffer("base", torch.tensor([0.6, 3.0]))

    def forward(self, curve):
        scaled = curve / curve[:, :1]
        return self.base * torch.exp(0.5 * torch.tanh(self.net(scaled)))


def basis(t, rates):
    return torch.exp(-t.view(1, -1, 1) * rates.unsqueeze(1))


@torch.no_grad()
def amplitudes(phi, curve, ridge):
    """Ridge solution of the inner problem."""
    gram = phi.transpose(1, 2) @ phi + ridge * torch.eye(phi.size(2))
    return torch.linalg.solve(gram, phi.transpose(1, 2) @ curve.unsqueeze(2))


def objective(model, t, curve, ridge):
    phi = basis(t, model(curve))
    coef = amplitudes(phi, curve, ridge)
    residual = (phi @ coef).squeeze(2) - curve
    return (residual.pow(2).sum(1) + ridge * coef.pow(2).sum((1, 2))).mean()


def train(cfg):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    t, curve, _ = measure(cfg.curves, cfg, gen)
    _, test_curve, test_rates = measure(200, cfg, gen)
    model = RateNet(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    for epoch in range(cfg.epochs):
        total = 0.0
        for idx in torch.randperm(cfg.curves, generator=gen).split(cfg.batch):
            loss = objective(model, t, curve[idx], cfg.ridge)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        schedule.step()
        if epoch % 6 == 5 or epoch == 0:
            with torch.no_grad():
                error = ((model(test_curve) - test_rates) / test_rates).abs().mean(0)
            print(f"epoch {epoch:2d}  misfit {total / cfg.curves:.5f}  error of the rates: "
                  f"slow {100 * error[0]:.1f} %  fast {100 * error[1]:.1f} %")
    return model


if __name__ == "__main__":
    cfg = Setup()
    model = train(cfg)
