"""Multi-step forecast of feeder power with a small MLP and reversible instance normalisation."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    lookback: int = 48
    horizon: int = 24
    hidden: int = 32
    batch: int = 64
    epochs: int = 8
    lr: float = 1e-3
    seed: int = 3


def simulate(length, generator):
    """Daily pattern on top of a wandering base level, with an amplitude that drifts."""
    t = torch.arange(length, dtype=torch.float32)
    level = torch.cumsum(0.25 * torch.randn(length, generator=generator), 0)
    amp = 1.0 + 0.4 * torch.sin(t / 301.0)
    noise = 0.1 * torch.randn(length, generator=generator)
    return 20 + level + amp * torch.sin(2 * torch.pi * t / 24) + noise


class Windows(Dataset):
    def __init__(self, series, lookback, horizon):
        self.series, self.lookback, self.horizon = series, lookback, horizon

    def __len__(self):
        return len(self.series) - self.lookback - self.horizon + 1

    def __getitem__(self, i):
        j = i + self.lookback
        return self.series[i:j], self.series[j:j + self.horizon]


class RevIN(nn.Module):
    """Per-window normalisation (no affine part); 'denorm' undoes it on the output."""

    def __init__(self, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x, mode):
        if mode == "norm":
            self.mean = x.mean(dim=1, keepdim=True)
            self.std = (x.var(dim=1, keepdim=True, unbiased=False) + self.eps).sqrt()
            return (x - self.mean) / self.std
        return x * self.std + self.mean


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.revin = RevIN()
        self.body = nn.Sequential(nn.Linear(cfg.lookback, cfg.hidden), nn.GELU(), nn.Linear(cfg.hidden, cfg.horizon))

    def forward(self, x):
        return self.body(self.revin(x, "norm"))


def scaled_pair(model, x, y):
    """Prediction and target on the normalised scale, where all windows weigh the same."""
    out = model(x)
    target = model.revin(y, "norm")
    return out, target


@torch.no_grad()
def evaluate(model, loader):
    """Returns the error on the normalised scale, as the papers report it, and in MW^2."""
    model.eval()
    scaled = raw = count = 0.0
    for x, y in loader:
        out, target = scaled_pair(model, x, y)
        scaled += (out - target).pow(2).sum().item()
        raw += (model.revin(out, "denorm") - y).pow(2).sum().item()
        count += y.numel()
    return scaled / count, raw / count


def main(cfg):
    torch.manual_seed(cfg.seed)
    series = simulate(2400, torch.Generator().manual_seed(cfg.seed))
    train = Windows(series[:1700], cfg.lookback, cfg.horizon)
    valid = Windows(series[1700:], cfg.lookback, cfg.horizon)
    train_loader = DataLoader(train, cfg.batch, shuffle=True)
    valid_loader = DataLoader(valid, 256)
    model = Forecaster(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    for epoch in range(cfg.epochs):
        model.train()
        for x, y in train_loader:
            out, target = scaled_pair(model, x, y)
            loss = nn.functional.mse_loss(out, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
        scaled, raw = evaluate(model, valid_loader)
        print(f"epoch {epoch:2d}  valid mse {scaled:.4f} (scaled)  {raw:.4f} (MW^2)")
    return model, valid_loader, raw


if __name__ == "__main__":
    model, valid_loader, final = main(Config())
