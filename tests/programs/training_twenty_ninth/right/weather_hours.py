"""Hourly temperature with a stateful GRU: truncated backpropagation along long series, correction to persistence."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

STATIONS, CHUNK = 16, 24


class RunningScale(nn.Module):
    """Normalises features by mean and variance collected over the training chunks."""

    def __init__(self, features, momentum=0.05):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean((0, 1)), self.momentum)
                self.var.lerp_(x.var((0, 1)), self.momentum)
        return (x - self.mean) / (self.var + 1e-5).sqrt()


class PersistenceGRU(nn.Module):
    """Forecast of the next hour = current temperature + a learned change, which is zero at the start."""

    def __init__(self, features=3, hidden=32):
        super().__init__()
        self.scale = RunningScale(features)
        self.rnn = nn.GRU(features, hidden, batch_first=True)
        self.change = nn.Linear(hidden, 1)
        nn.init.zeros_(self.change.weight)
        nn.init.zeros_(self.change.bias)

    def forward(self, x, state=None):
        h, state = self.rnn(self.scale(x), state)
        return x[..., 0] + self.change(h).squeeze(-1), state


def make_weather(hours=1200):
    t = torch.arange(hours).float()
    phase = 0.5 * torch.randn(STATIONS, 1)
    front = torch.zeros(STATIONS, hours)
    kick = (torch.rand(STATIONS, hours) < 0.03).float() * 3.0 * torch.randn(STATIONS, hours)
    for i in range(1, hours):
        front[:, i] = 0.95 * front[:, i - 1] + kick[:, i]
    temperature = 12 + 5 * torch.sin(2 * math.pi * t / 24 + phase) + front + 0.2 * torch.randn(STATIONS, hours)
    clock = torch.stack([torch.sin(2 * math.pi * t / 24), torch.cos(2 * math.pi * t / 24)], dim=-1)
    return torch.cat([temperature[..., None], clock.expand(STATIONS, hours, 2)], dim=-1)


def train_pass(model, optimizer, series):
    """One pass through the series; the state runs on from chunk to chunk, its graph does not."""
    model.train()
    state, losses = None, []
    for start in range(0, series.shape[1] - CHUNK, CHUNK):
        x = series[:, start : start + CHUNK]
        y = series[:, start + 1 : start + CHUNK + 1, 0]
        if state is not None:
            state = state.detach()
        forecast, state = model(x, state)
        loss = F.smooth_l1_loss(forecast, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


@torch.no_grad()
def test_error(model, past, future):
    """The state is warmed up on the past before the future is forecast hour by hour."""
    model.eval()
    _, state = model(past)
    forecast, _ = model(future[:, :-1], state)
    target = future[:, 1:, 0]
    return (forecast - target).abs().mean().item(), (future[:, :-1, 0] - target).abs().mean().item()


def main():
    torch.manual_seed(17)
    series = make_weather()
    train, test = series[:, :960], series[:, 960:]
    model = PersistenceGRU()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(4):
        loss = train_pass(model, optimizer, train)
        error, persistence = test_error(model, train[:, -96:], test)
        print(f"epoch {epoch}  loss {loss:.4f}  test MAE {error:.4f}  persistence {persistence:.4f}")
    return model


if __name__ == "__main__":
    model = main()
