"""Forecasting of an electric load with rare meter faults by a diagonal state-space model over fixed calendar features."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(40)


def make_load(length):
    t = torch.arange(length).float()
    level = torch.zeros(length)
    noise = 0.1 * torch.randn(length)
    for i in range(1, length):
        level[i] = 0.97 * level[i - 1] + noise[i]
    load = level + torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(2 * math.pi * t / 84 + 1)
    faults = (torch.rand(length) < 0.002) * torch.empty(length).uniform_(30, 60)
    return t, load + faults, load


class Calendar(nn.Module):
    """Fourier features of the hour, with fixed frequencies."""

    def __init__(self, periods=(24.0, 84.0)):
        super().__init__()
        self.rate = nn.Parameter(2 * math.pi / torch.tensor(periods))
        self.offset = nn.Parameter(torch.zeros(len(periods)))

    def forward(self, t):
        angle = t[..., None] * self.rate + self.offset
        return torch.cat([angle.sin(), angle.cos()], -1)


class StateSpace(nn.Module):
    def __init__(self, width, states):
        super().__init__()
        self.log_rate = nn.Parameter(torch.linspace(-3.5, 0.5, states).repeat(width, 1))
        self.inlet = nn.Parameter(torch.randn(width, states) * 0.3)
        self.outlet = nn.Parameter(torch.randn(width, states) / states)
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, u):
        decay = torch.exp(-self.log_rate.exp())
        lag = torch.arange(u.shape[1], dtype=u.dtype)
        kernel = (decay[..., None] ** lag * (self.inlet * self.outlet)[..., None]).sum(1)
        size = 2 * u.shape[1]
        spectrum = torch.fft.rfft(u.transpose(1, 2), size) * torch.fft.rfft(kernel, size)
        y = torch.fft.irfft(spectrum, size)[..., :u.shape[1]].transpose(1, 2)
        return y + u * self.skip


class Forecaster(nn.Module):
    def __init__(self, width=16, states=8):
        super().__init__()
        self.calendar = Calendar()
        self.inlet = nn.Linear(5, width)
        self.layers = nn.ModuleList(StateSpace(width, states) for _ in range(2))
        self.mixers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.outlet = nn.Linear(width, 1)

    def forward(self, t, load):
        h = self.inlet(torch.cat([self.calendar(t), load[..., None]], -1))
        for layer, mixer in zip(self.layers, self.mixers):
            h = h + mixer(F.gelu(layer(h)))
        return self.outlet(h).squeeze(-1)


def windows(series, size, starts):
    return torch.stack([series[s:s + size] for s in starts])


model = Forecaster()
model.calendar.requires_grad_(False)
trainable = filter(lambda p: p.requires_grad, model.parameters())
optimizer = torch.optim.SGD(trainable, lr=0.03, momentum=0.9, nesterov=True)
steps, size = 400, 72
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.03, total_steps=steps, cycle_momentum=False)
hours, seen, _ = make_load(4000)
average = 0.0
for step in range(steps):
    starts = torch.randint(0, len(hours) - size - 1, (16,)).tolist()
    t, x, y = windows(hours, size, starts), windows(seen, size, starts), windows(seen[1:], size, starts)
    loss = F.mse_loss(model(t, x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trainable, max_norm=0.1)
    optimizer.step()
    schedule.step()
    average = loss.item() if step == 0 else 0.95 * average + 0.05 * loss.item()

model.eval()
hours, seen, clean = make_load(1500)
starts = [s for s in range(0, len(hours) - size - 1, 36) if (seen[s:s + size] - clean[s:s + size]).max() < 1]
with torch.no_grad():
    guess = model(windows(hours, size, starts), windows(seen, size, starts))[:, 24:]
    error = F.mse_loss(guess, windows(clean[1:], size, starts)[:, 24:]).item()
print(f"training loss {average:.3f}  error on quiet test windows {error:.4f}")
