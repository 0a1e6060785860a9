"""Inflow of several reservoirs, one week ahead; each window is scaled by its own level before it enters the model."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def inflows(days, sites, rng):
    t = np.arange(days)[:, None]
    level = rng.uniform(20, 400, sites)
    season = 1 + 0.5 * np.sin(2 * np.pi * t / 120 + rng.uniform(0, 6, sites)) + 0.2 * np.sin(2 * np.pi * t / 7)
    wet = np.zeros((days, sites))
    for d in range(1, days):
        wet[d] = 0.9 * wet[d - 1] + 0.08 * rng.standard_normal(sites)
    return (level * np.exp(wet) * season).astype(np.float32)


class InflowWindows(Dataset):
    """Items are (scaled history, scaled future, mean, spread) of one site."""

    def __init__(self, table, first, stop, history, horizon):
        self.table = table
        self.history = history
        self.offsets = np.arange(history + horizon)
        starts = np.arange(first, stop - history - horizon + 1)
        self.index = [(s, site) for site in range(table.shape[1]) for s in starts]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, k):
        start, site = self.index[k]
        window = self.table[start + self.offsets, site]
        mean = window[:self.history].mean()
        spread = window[:self.history].std() + 1e-3
        window -= mean
        window /= spread
        window = torch.from_numpy(window)
        return window[:self.history], window[self.history:], mean, spread


class MixerForecaster(nn.Module):
    """Low and high frequencies of the history go through separate linear maps."""

    def __init__(self, history, horizon, width=48):
        super().__init__()
        self.smooth = nn.AvgPool1d(7, stride=1, padding=3, count_include_pad=False)
        self.trend = nn.Linear(history, horizon)
        self.detail = nn.Sequential(nn.Linear(history, width), nn.GELU(), nn.Linear(width, horizon))

    def forward(self, x):
        low = self.smooth(x.unsqueeze(1)).squeeze(1)
        return self.trend(low) + self.detail(x - low)


@torch.no_grad()
def relative_error(model, loader):
    """Mean absolute error in m3/s over the mean inflow, after the scaling is undone."""
    model.eval()
    error = total = 0.0
    for x, y, mean, spread in loader:
        mean, spread = mean.unsqueeze(1), spread.unsqueeze(1)
        error += ((model(x) - y) * spread).abs().sum().item()
        total += (y * spread + mean).sum().item()
    model.train()
    return error / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--history", type=int, default=56)
    parser.add_argument("--horizon", type=int, default=7)
    parser.add_argument("--sites", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args([])

    torch.manual_seed(31)
    table = inflows(800, args.sites, np.random.default_rng(16))
    train_set = InflowWindows(table, 0, 560, args.history, args.horizon)
    test_set = InflowWindows(table, 560, 800, args.history, args.horizon)
    train_loader = DataLoader(train_set, 64, shuffle=True)
    test_loader = DataLoader(test_set, 256)

    model = MixerForecaster(args.history, args.horizon)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=args.epochs * len(train_loader))
    for epoch in range(args.epochs):
        running = 0.0
        for x, y, _, _ in train_loader:
            loss = nn.functional.smooth_l1_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            running += loss.item() * len(x)
        print(f"epoch {epoch}: train loss {running / len(train_set):.4f}  "
              f"test relative error {relative_error(model, test_loader):.3f}")
    return model, table


if __name__ == "__main__":
    model, table = main()
