"""Forecast geyser temperatures: a seasonal naive forecast plus a learned correction.

The correction starts at nothing, so that training begins exactly at the naive forecast.
"""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def make_series(n_series, length, period, gen):
    t = torch.arange(length).float()
    phase = 6.28 * torch.rand(n_series, 1, generator=gen)
    season = torch.sin(6.2832 * t / period + phase)
    noise = torch.randn(n_series, length, generator=gen)
    drift = torch.zeros(n_series, length)
    for i in range(1, length):
        drift[:, i] = 0.95 * drift[:, i - 1] + 0.3 * noise[:, i]
    return season + drift + 0.1 * torch.randn(n_series, length, generator=gen)


def cut_windows(series, context, horizon, stride=4):
    windows = series.unfold(1, context + horizon, stride).reshape(-1, context + horizon)
    return windows[:, :context], windows[:, context:]


class CausalBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.mix(F.relu(self.conv(F.pad(x, (self.pad, 0)))))


class ResidualForecaster(nn.Module):
    def __init__(self, period, horizon, channels=16):
        super().__init__()
        self.period, self.horizon = period, horizon
        self.lift = nn.Conv1d(2, channels, 1)
        self.blocks = nn.Sequential(*[CausalBlock(channels, 2**i) for i in range(4)])
        self.head = nn.Linear(channels, horizon)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def naive(self, context):
        last_season = context[:, -self.period:]
        return last_season[:, : self.horizon]

    def forward(self, context):
        lagged = F.pad(context[:, : -self.period], (self.period, 0))
        x = self.blocks(self.lift(torch.stack([context, context - lagged], dim=1)))
        return self.naive(context) + self.head(x[:, :, -1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--period", type=int, default=12)
    parser.add_argument("--horizon", type=int, default=6)
    parser.add_argument("--context", type=int, default=36)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=4e-3)
    args = parser.parse_args([])

    torch.set_num_threads(1)
    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    series = make_series(40, 260, args.period, gen)
    # time split: the last part of every series is kept for the test
    train_x, train_y = cut_windows(series[:, :200], args.context, args.horizon)
    test_x, test_y = cut_windows(series[:, 200:], args.context, args.horizon)

    model = ResidualForecaster(args.period, args.horizon)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    steps = args.epochs * -(-len(train_x) // 64)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    naive_mae = F.l1_loss(model.naive(test_x), test_y).item()
    print(f"{len(train_x)} windows, seasonal naive MAE {naive_mae:.4f}")
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(train_x)).split(64):
            loss = F.l1_loss(model(train_x[idx]), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        with torch.no_grad():
            test_mae = F.l1_loss(model(test_x), test_y).item()
        print(f"epoch {epoch + 1}: train MAE {loss.item():.4f}, test MAE {test_mae:.4f}")
    return model, naive_mae, test_mae


if __name__ == "__main__":
    model, naive_mae, test_mae = main()
