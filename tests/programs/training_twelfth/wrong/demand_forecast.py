"""Weekly demand forecasting for a set of stores: small residual MLP, averaged weights for validation."""
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    history: int = 28
    horizon: int = 7
    hidden: int = 64
    epochs: int = 24
    batch_size: int = 64
    lr: float = 2e-3
    ema_decay: float = 0.995
    validate_every: int = 10  # steps
    seed: int = 7


def make_series(n_stores=60, length=140, seed=0):
    rng, t = np.random.default_rng(seed), np.arange(length)
    week, level = rng.normal(0, 1, (n_stores, 7)), rng.uniform(-1, 1, (n_stores, 1))
    trend = rng.normal(0, 0.006, (n_stores, 1)) * t
    y = level + trend + 0.6 * np.sin(2 * math.pi * t / rng.uniform(20, 45, (n_stores, 1))) + week[:, t % 7] + 0.15 * rng.normal(size=(n_stores, length))
    return torch.tensor(y, dtype=torch.float32)


def windows(series, cfg, stride):
    chunks = series.unfold(1, cfg.history + cfg.horizon, stride).reshape(-1, cfg.history + cfg.horizon)
    return chunks[:, :cfg.history], chunks[:, cfg.history:]


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Linear(cfg.history, cfg.hidden)
        self.mid = nn.Sequential(nn.GELU(), nn.Linear(cfg.hidden, cfg.hidden), nn.GELU())
        self.out = nn.Linear(cfg.hidden, cfg.horizon)

    def forward(self, x):
        h = self.inp(x)
        return self.out(h + self.mid(h))


class WeightAverage:
    """Exponential moving average of the weights, swapped in for validation."""

    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
        self.saved = {}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def apply(self, model):
        for n, p in model.named_parameters():
            self.saved[n] = p.data
            p.copy_(self.shadow[n])

    @torch.no_grad()
    def restore(self, model):
        for n, p in model.named_parameters():
            p.copy_(self.saved.pop(n))


class Trainer:
    def __init__(self, cfg, model, train, valid):
        self.cfg, self.model, self.train_data, self.valid = cfg, model, train, valid
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
        self.ema = WeightAverage(model, cfg.ema_decay)
        self.history = []

    @torch.no_grad()
    def validate(self):
        self.ema.apply(self.model)
        x, y = self.valid
        self.history.append((self.model(x) - y).abs().mean().item())
        self.ema.restore(self.model)

    def fit(self):
        loader = DataLoader(TensorDataset(*self.train_data), self.cfg.batch_size, shuffle=True)
        step = 0
        for epoch in range(self.cfg.epochs):
            for x, y in loader:
                self.opt.zero_grad()
                loss = nn.functional.smooth_l1_loss(self.model(x), y)
                loss.backward()
                self.opt.step()
                self.ema.update(self.model)
                step += 1
                if step % self.cfg.validate_every == 0:
                    self.validate()
            if epoch % 4 == 3:
                print(f"epoch {epoch + 1:2d}  train {loss.item():.4f}  valid MAE {self.history[-1]:.4f}")


cfg = Config()
torch.manual_seed(cfg.seed)
series = make_series()
trainer = Trainer(cfg, Forecaster(cfg), windows(series[:, :105], cfg, 2), windows(series[:, 105:], cfg, 1))
trainer.fit()
print(f"final MAE of the averaged model: {trainer.history[-1]:.4f}")
