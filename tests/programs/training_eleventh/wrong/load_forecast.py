"""Hourly electricity load, one day ahead: temporal convolutions, validated with averaged weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
HISTORY, HORIZON = 96, 24
CUT = 24 * 190


def make_load(hours=24 * 240):
    t = torch.arange(hours, dtype=torch.float32)
    hour, day = t % 24, (t // 24) % 7
    weekend = (day >= 5).float()
    shape = torch.sin(2 * math.pi * (hour - 7) / 24) + 0.4 * torch.sin(4 * math.pi * (hour - 3) / 24)
    season = 0.5 * torch.cos(2 * math.pi * t / (24 * 90))
    weather = torch.zeros(hours)
    for k in range(1, hours):
        weather[k] = 0.97 * weather[k - 1] + 0.12 * torch.randn(())
    load = (1 - 0.5 * weekend) * shape + season + 0.8 * weather * (1 + 0.5 * shape) + 0.1 * torch.randn(hours)
    known = load[:CUT]
    return (load - known.mean()) / known.std()


def windows(series):
    w = series.unfold(0, HISTORY + HORIZON, 3)
    return w[:, :HISTORY], w[:, HISTORY:]


class CausalBlock(nn.Module):
    def __init__(self, ch, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(ch, ch, 3, dilation=dilation)
        self.mix = nn.Conv1d(ch, ch, 1)

    def forward(self, x):
        return x + self.mix(F.gelu(self.conv(F.pad(x, (self.pad, 0)))))


class Forecaster(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.stem = nn.Conv1d(1, ch, 1)
        self.blocks = nn.Sequential(*[CausalBlock(ch, d) for d in (1, 2, 4, 8)])
        self.head = nn.Linear(ch * 4, HORIZON)

    def forward(self, x):
        h = self.blocks(self.stem(x[:, None]))
        return self.head(h[:, :, -96::24].flatten(1)) + x[:, -1:]


class WeightAverage:
    """Exponential moving average of the weights; put in place for validation, taken out again afterwards."""

    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.named_parameters()}
        self.backup = {}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.named_parameters():
            self.shadow[k].lerp_(v, 1 - self.decay)

    @torch.no_grad()
    def swap_in(self, model):
        self.backup = {k: v.detach() for k, v in model.named_parameters()}
        for k, v in model.named_parameters():
            v.copy_(self.shadow[k])

    @torch.no_grad()
    def swap_out(self, model):
        for k, v in model.named_parameters():
            v.copy_(self.backup[k])
        self.backup = {}


load = make_load()
train_x, train_y = windows(load[:CUT])
val_x, val_y = windows(load[CUT - HISTORY :])

model = Forecaster()
average = WeightAverage(model)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
step = 0
for epoch in range(6):
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(32):
        loss = F.smooth_l1_loss(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        total += loss.item() * len(idx)
        step += 1
        if step % 10 == 0:
            average.swap_in(model)
            with torch.no_grad():
                val_mae = (model(val_x) - val_y).abs().mean().item()
            average.swap_out(model)
    print(f"epoch {epoch + 1}  train loss {total / len(train_x):.4f}  val MAE (averaged weights) {val_mae:.4f}")
with torch.no_grad():
    print("val MAE of the last raw weights", round((model(val_x) - val_y).abs().mean().item(), 4))
