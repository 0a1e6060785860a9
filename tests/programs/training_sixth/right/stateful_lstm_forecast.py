"""Stateful LSTM on long series: state carried over windows, detached at the border of each window."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    series: int = 16
    length: int = 480
    window: int = 24
    hidden: int = 32
    layers: int = 2
    epochs: int = 8
    lr: float = 5e-3
    accumulate: int = 2


def make_series(cfg, generator):
    t = torch.arange(cfg.length + 1).float()
    phase = 6.28 * torch.rand(cfg.series, 1, generator=generator)
    slow = torch.sin(2 * torch.pi * t / 60 + phase)
    fast = 0.5 * torch.sin(2 * torch.pi * t / 7 + 2 * phase)
    noise = 0.05 * torch.randn(cfg.series, cfg.length + 1, generator=generator)
    return (slow + fast + noise).unsqueeze(-1)


def detach_state(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(detach_state(s) for s in state)


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.lstm = nn.LSTM(1, cfg.hidden, cfg.layers, batch_first=True)
        self.h0 = nn.Parameter(torch.zeros(cfg.layers, 1, cfg.hidden))
        self.c0 = nn.Parameter(torch.zeros(cfg.layers, 1, cfg.hidden))
        self.out = nn.Linear(cfg.hidden, 1)

    def initial_state(self, batch):
        return tuple(s.expand(-1, batch, -1).contiguous() for s in (self.h0, self.c0))

    def forward(self, x, state):
        h, state = self.lstm(x, state)
        return x + self.out(h), state


def train_epoch(model, optimizer, data, cfg):
    state = model.initial_state(data.size(0))
    total, windows = 0.0, cfg.length // cfg.window
    optimizer.zero_grad()
    for k in range(windows):
        x = data[:, k * cfg.window : (k + 1) * cfg.window]
        y = data[:, k * cfg.window + 1 : (k + 1) * cfg.window + 1]
        pred, state = model(x, state)
        state = detach_state(state)
        loss = F.mse_loss(pred, y)
        (loss / cfg.accumulate).backward()
        if (k + 1) % cfg.accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item()
    return total / windows


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    pred, _ = model(data[:, :-1], model.initial_state(data.size(0)))
    model.train()
    return F.mse_loss(pred[:, 40:], data[:, 41:]).item()


cfg = Config()
torch.manual_seed(15)
generator = torch.Generator().manual_seed(3)
train_data, test_data = make_series(cfg, generator), make_series(cfg, generator)
model = Forecaster(cfg)
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
for epoch in range(cfg.epochs):
    loss = train_epoch(model, optimizer, train_data, cfg)
    print(f"epoch {epoch} train {loss:.4f} test {evaluate(model, test_data):.4f}")
