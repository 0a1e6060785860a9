"""Day-ahead output of a wind park from the last days, temporal convolutions, averaged weights for serving."""
import copy
import io

import numpy as np
import torch
from torch import nn

HISTORY, HORIZON = 72, 24


def park_output(hours, rng):
    """Hourly features (output in MW, wind in m/s, temperature in C) of a small park."""
    t = np.arange(hours)
    wind = 7 + 2.2 * np.sin(2 * np.pi * t / 24 + 0.7) + 1.5 * np.sin(2 * np.pi * t / 163)
    gust = np.zeros(hours)
    for i in range(1, hours):
        gust[i] = 0.93 * gust[i - 1] + 0.35 * rng.standard_normal()
    wind = np.clip(wind + gust, 0, None)
    output = 12 / (1 + np.exp(-(wind - 7) * 0.8)) + 0.2 * rng.standard_normal(hours)
    temperature = 11 + 5 * np.sin(2 * np.pi * (t - 9) / 24) + rng.standard_normal(hours)
    return np.stack([output, wind, temperature]).astype(np.float32)


def windows(table, start, stop):
    xs, ys = [], []
    for i in range(start, stop - HISTORY - HORIZON):
        xs.append(table[:, i:i + HISTORY])
        ys.append(table[0, i + HISTORY:i + HISTORY + HORIZON])
    return torch.from_numpy(np.stack(xs)), torch.from_numpy(np.stack(ys))


class ConvBlock(nn.Sequential):
    def __init__(self, c_in, c_out, dilation):
        super().__init__(
            nn.Conv1d(c_in, c_out, 3, padding=dilation, dilation=dilation, bias=False),
            nn.BatchNorm1d(c_out),
            nn.ReLU(),
        )


class Forecaster(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.scale_in = nn.BatchNorm1d(3)
        self.body = nn.Sequential(
            ConvBlock(3, channels, 1), ConvBlock(channels, channels, 2), ConvBlock(channels, channels, 4)
        )
        self.head = nn.Sequential(nn.AvgPool1d(6), nn.Flatten(), nn.Linear(channels * HISTORY // 6, HORIZON))

    def forward(self, x):
        return self.head(self.body(self.scale_in(x)))


class WeightAverage:
    """Exponential moving average of a model; `self.model` is the one that we serve."""

    def __init__(self, model, decay=0.98):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for avg, new in zip(self.model.parameters(), model.parameters()):
            avg.lerp_(new, 1 - self.decay)


@torch.no_grad()
def mae(model, x, y):
    return (model(x) - y).abs().mean().item()


def train(epochs=8, batch_size=64, lr=3e-3):
    torch.manual_seed(8)
    table = park_output(1900, np.random.default_rng(21))
    x_train, y_train = windows(table, 0, 1500)
    x_val, y_val = windows(table, 1500, 1900)

    model = Forecaster()
    average = WeightAverage(model)
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        losses = []
        for rows in torch.randperm(len(x_train)).split(batch_size):
            loss = nn.functional.huber_loss(model(x_train[rows]), y_train[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(model)
            losses.append(loss.item())
        print(f"epoch {epoch}: train huber {np.mean(losses):.3f}  val MAE {mae(average.model, x_val, y_val):.3f} MW")

    artifact = io.BytesIO()
    torch.save({"model": average.model.state_dict(), "history": HISTORY, "horizon": HORIZON}, artifact)
    print(f"serving artifact: {artifact.tell() / 1024:.0f} KiB")
    return model, average.model, (x_val, y_val)


if __name__ == "__main__":
    model, served, val = train()
