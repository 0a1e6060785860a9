import math

import torch
from torch import nn

QUANTILES = (0.1, 0.5, 0.9)


def household_load(hours, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * t / 24)
    weekly = 0.5 * torch.sin(2 * math.pi * t / 168)
    return 1.5 + daily + weekly + 0.2 * torch.randn(hours, generator=g)


def windows(series, history):
    x = series.unfold(0, history, 1)[:-1]
    y = series[history:]
    return x.contiguous(), y


class QuantileForecaster(nn.Module):
    def __init__(self, history, width, quantiles):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(history, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.head = nn.Linear(width, len(quantiles))

    def forward(self, x):
        return self.head(self.body(x))


class PinballLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.quantiles = quantiles

    def forward(self, prediction, target):
        total = 0.0
        for i, q in enumerate(self.quantiles):
            error = target - prediction[:, i : i + 1]
            total = total + torch.maximum(q * error, (q - 1) * error).mean()
        return total / len(self.quantiles)


def fit(series, history=24, epochs=8, batch=64):
    x, y = windows(series, history)
    cut = int(0.8 * len(x))
    model = QuantileForecaster(history, 32, QUANTILES)
    criterion = PinballLoss(QUANTILES)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for idx in torch.randperm(cut).split(batch):
            loss = criterion(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            held_out = criterion(model(x[cut:]), y[cut:])
        print(f"epoch {epoch} train {loss.item():.4f} held-out {held_out.item():.4f}")
    return model, x[cut:], y[cut:]


if __name__ == "__main__":
    torch.manual_seed(0)
    model, x_test, y_test = fit(household_load(24 * 30, 3))
    print("median forecast", round(model(x_test)[:, 1].mean().item(), 3), "actual", round(y_test.mean().item(), 3))
