"""Daily demand quantiles for a new region.

A home-region model is adapted in two stages (head, then all layers) under one warm-up and cosine schedule.
"""
import math

import numpy as np
import torch
from torch import nn

QUANTILES = torch.tensor([0.1, 0.5, 0.9])
LOOKBACK, HORIZON = 28, 7


def make_region(rng, n_series, n_days, weekly, promo_lift, dispersion):
    """Negative binomial sales with weekly shape, slow trend and known promotions, on a log scale."""
    day = np.arange(n_days)
    level = rng.normal(3.0, 0.6, (n_series, 1)) + 0.3 * np.sin(2 * np.pi * (day / 180 + rng.random((n_series, 1))))
    shape = weekly * np.cos(2 * np.pi * (day / 7)[None] + rng.normal(0, 0.4, (n_series, 1)))
    promo = rng.random((n_series, n_days)) < 0.12
    rate = np.exp(level + shape + promo_lift * promo)
    sales = rng.poisson(rng.gamma(dispersion, rate / dispersion))
    return np.log1p(sales).astype(np.float32), promo.astype(np.float32)


def make_windows(sales, promo, first, last, stride):
    x, y = [], []
    for t in range(first, last - LOOKBACK - HORIZON, stride):
        mid, end = t + LOOKBACK, t + LOOKBACK + HORIZON
        mean = sales[:, t:mid].mean(1, keepdims=True)
        x.append(np.concatenate([sales[:, t:mid] - mean, promo[:, t:end], mean], axis=1))
        y.append(sales[:, mid:end])
    return torch.from_numpy(np.concatenate(x)), torch.from_numpy(np.concatenate(y))


class QuantileNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        n_in = 2 * LOOKBACK + HORIZON + 1
        self.encoder = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, HORIZON * len(QUANTILES))

    def forward(self, x):
        out = self.head(self.encoder(x)).view(-1, HORIZON, len(QUANTILES))
        return out + x[:, -1:, None]


def pinball(pred, y):
    error = y[..., None] - pred
    return torch.maximum(QUANTILES * error, (QUANTILES - 1) * error).mean()


class Trainer:
    def __init__(self, model, data, epochs, lr, batch_size=64):
        self.model, self.data, self.lr, self.batch_size = model, data, lr, batch_size
        self.total_steps = epochs * math.ceil(len(data[0]) / batch_size)
        self.optimizer = self.make_optimizer()
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.lr_factor)

    def make_optimizer(self):
        params = [p for p in self.model.parameters() if p.requires_grad]
        return torch.optim.Adam(params, lr=self.lr)

    def lr_factor(self, step, warmup=30):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / (self.total_steps - warmup))))

    def unfreeze(self):
        self.model.encoder.requires_grad_(True)
        self.optimizer = self.make_optimizer()

    def fit(self, epochs, name):
        x, y = self.data
        for _ in range(epochs):
            losses = []
            for idx in torch.randperm(len(x)).split(self.batch_size):
                loss = pinball(self.model(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
                losses.append(loss.item())
        print(f"{name}: loss {np.mean(losses):.4f}  lr {self.scheduler.get_last_lr()[0]:.5f}")


def main(seed=2):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    home = make_windows(*make_region(rng, 60, 300, 0.3, 0.4, 8.0), 0, 300, 5)
    region = make_region(rng, 40, 420, 0.5, 0.8, 5.0)
    train, test = make_windows(*region, 0, 300, 3), make_windows(*region, 300, 420, 3)

    model = QuantileNet()
    Trainer(model, home, epochs=6, lr=3e-3).fit(6, "home region")
    model.encoder.requires_grad_(False)
    trainer = Trainer(model, train, epochs=12, lr=1e-2)
    trainer.fit(2, "new region, head")
    trainer.unfreeze()
    trainer.fit(10, "new region, all")

    with torch.no_grad():
        pred, y = model(test[0]), test[1]
        test_loss, coverage = pinball(pred, y).item(), ((y > pred[..., 0]) & (y < pred[..., 2])).float().mean().item()
    print(f"test pinball {test_loss:.4f}  coverage of the 80% interval {coverage:.3f}")
    return trainer, test_loss


if __name__ == "__main__":
    trainer, test_loss = main()
