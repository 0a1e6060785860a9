"""Prediction intervals for the electric load of the next hours: LSTM with a quality-driven interval loss."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

HISTORY, HORIZON = 24, 6


class IntervalLoss(nn.Module):
    """Narrow intervals among those that capture the load, subject to a coverage of at least 1 - alpha."""

    def __init__(self, alpha=0.1, weight=20.0):
        super().__init__()
        self.alpha = alpha
        self.weight = weight

    def forward(self, lower, upper, y):
        inside = ((y >= lower) & (y <= upper)).float()
        coverage = inside.mean()
        captured_width = ((upper - lower) * inside).sum() / (inside.sum() + 1e-3)
        shortfall = F.relu((1.0 - self.alpha) - coverage)
        return captured_width + self.weight * shortfall.pow(2), coverage


class LoadForecaster(nn.Module):
    def __init__(self, hidden=28):
        super().__init__()
        self.rnn = nn.LSTM(3, hidden, batch_first=True)
        self.center = nn.Linear(hidden, HORIZON)
        self.spread = nn.Linear(hidden, HORIZON)

    def forward(self, x):
        _, (h, _) = self.rnn(x)
        h = h[-1]
        center = self.center(h)
        half = F.softplus(self.spread(h))
        return center, center - half, center + half


def make_load(hours=2000):
    t = torch.arange(hours).float()
    level = torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(2 * math.pi * t / 168)
    noise_scale = 0.15 + 0.25 * (torch.sin(2 * math.pi * t / 24 + 1.0) > 0).float()
    load = level + noise_scale * torch.randn(hours)
    clock = torch.stack([torch.sin(2 * math.pi * t / 24), torch.cos(2 * math.pi * t / 24)], dim=-1)
    return load, torch.cat([load[:, None], clock], dim=-1)


def windows(load, features, start):
    x = torch.stack([features[s : s + HISTORY] for s in start.tolist()])
    y = torch.stack([load[s + HISTORY : s + HISTORY + HORIZON] for s in start.tolist()])
    return x, y


@torch.no_grad()
def report(model, x, y):
    model.eval()
    center, lower, upper = model(x)
    model.train()
    covered = ((y >= lower) & (y <= upper)).float().mean().item()
    return (center - y).abs().mean().item(), covered, (upper - lower).mean().item()


def main():
    torch.manual_seed(21)
    load, features = make_load()
    split = 1500
    val_start = torch.arange(split, load.numel() - HISTORY - HORIZON, 6)
    x_val, y_val = windows(load, features, val_start)

    model = LoadForecaster()
    interval_loss = IntervalLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    for step in range(120):
        start = torch.randint(0, split - HISTORY - HORIZON, (40,))
        x, y = windows(load, features, start)
        center, lower, upper = model(x)
        interval, coverage = interval_loss(lower, upper, y)
        loss = F.l1_loss(center, y) + 0.5 * interval
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}  batch coverage {coverage.item():.3f}")

    mae, covered, width = report(model, x_val, y_val)
    print(f"validation: MAE {mae:.3f}  coverage {covered:.3f}  mean width {width:.3f}")
    return model, covered, width


if __name__ == "__main__":
    model, covered, width = main()
