import math

import torch
from torch import nn
import torch.nn.functional as F

WINDOW, CHANNELS = 24, 3


def make_series(length, generator):
    """Three channels of seasonal waves on top of slowly wandering levels."""
    t = torch.arange(length, dtype=torch.float32)
    channels = []
    for c in range(CHANNELS):
        level = 0.25 * torch.randn(length, generator=generator).cumsum(0)
        wave = (1.0 + 0.3 * c) * torch.sin(2 * math.pi * t / (8 + 4 * c))
        channels.append(level + wave + 0.1 * torch.randn(length, generator=generator))
    return torch.stack(channels, dim=-1)


def windows(series):
    pieces = series.unfold(0, 2 * WINDOW, 1).transpose(1, 2)
    return pieces[:, :WINDOW], pieces[:, WINDOW:]


class ReversibleNorm(nn.Module):
    """Normalises every window by its own statistics and puts them back onto the forecast."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        self.mean = x.mean(dim=1, keepdim=True).detach()
        self.std = (x.var(dim=1, keepdim=True, unbiased=False) + self.eps).sqrt().detach()
        return (x - self.mean) / self.std * self.gain + self.bias

    def inverse(self, z):
        return (z - self.bias) / self.gain * self.std + self.mean


class Forecaster(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.norm = ReversibleNorm(CHANNELS)
        self.embed = nn.Sequential(nn.Linear(WINDOW, width), nn.GELU(), nn.Linear(width, width))
        self.predictor = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.readout = nn.Linear(width, WINDOW)

    def encode(self, x):
        return self.embed(self.norm(x).transpose(1, 2))

    def decode(self, z):
        return self.norm.inverse(self.readout(self.predictor(z)).transpose(1, 2))

    def forward(self, x):
        return self.decode(self.encode(x))


def training_loss(model, past, future):
    z = model.encode(past)
    with torch.no_grad():
        z_future = model.encode(future)
    latent = 1 - F.cosine_similarity(model.predictor(z), z_future, dim=-1).mean()
    forecast = model.decode(z)
    return F.mse_loss(forecast, future) + 0.1 * latent


@torch.no_grad()
def evaluate(model, past, future):
    model.eval()
    error = F.mse_loss(model(past), future).item()
    naive = F.mse_loss(past[:, -1:].expand_as(future), future).item()
    return error, naive


generator = torch.Generator().manual_seed(11)
torch.manual_seed(11)
past, future = windows(make_series(2400, generator))
cut = int(0.75 * len(past))
train_past, train_future = past[:cut], future[:cut]
test_past, test_future = past[cut + 2 * WINDOW:], future[cut + 2 * WINDOW:]
model = Forecaster()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
for epoch in range(20):
    model.train()
    running = 0.0
    for idx in torch.randperm(cut, generator=generator).split(64):
        loss = training_loss(model, train_past[idx], train_future[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx) / cut
    schedule.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {running:.3f}")
test_error, naive_error = evaluate(model, test_past, test_future)
print(f"test error {test_error:.3f} (last value: {naive_error:.3f})")
