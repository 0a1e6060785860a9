"""One-day-ahead river gauge forecasts for many catchments, trained on a continuous stream of days."""
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    stations: int = 32
    days: int = 840
    test_days: int = 200
    chunk: int = 40
    hidden: int = 24
    epochs: int = 12
    lr: float = 6e-3
    seed: int = 3


def simulate(cfg, generator):
    """Snow falls in bursts; warm days release it, and the water needs about a week to reach the gauge."""
    total = cfg.days + cfg.test_days
    burst = (torch.rand(total, cfg.stations, generator=generator) < 0.25).float()
    fall = burst * torch.rand(total, cfg.stations, generator=generator) * 2
    warmth = torch.rand(total, cfg.stations, generator=generator)
    release = fall * (0.5 + warmth)
    lag = torch.arange(14).float()
    kernel = torch.exp(-0.5 * ((lag - 7.0) / 1.0) ** 2)
    kernel = kernel / kernel.sum()
    level = torch.zeros(total, cfg.stations)
    for k in range(len(kernel)):
        level[k:] += kernel[k] * release[: total - k]
    level = (level - level.mean()) / level.std()
    level += 0.1 * torch.randn(total, cfg.stations, generator=generator)
    inputs = torch.stack([fall, warmth, level], dim=-1)[:-1]
    return inputs, level[1:]


class GaugeModel(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.GRUCell(features, hidden)
        self.readout = nn.Linear(hidden, 1)

    def start(self, batch):
        return torch.zeros(batch, self.hidden)

    def forward(self, days, state):
        """days: (time, station, feature); returns the forecasts and the state to carry on with."""
        forecasts = []
        for day in days:
            # the stream goes on for years, so the graph must not
            state = self.cell(day, state.detach())
            forecasts.append(self.readout(state).squeeze(-1))
        return torch.stack(forecasts), state


def train_epoch(model, optimizer, inputs, targets, cfg):
    state = model.start(inputs.shape[1])
    total = 0.0
    for begin in range(0, len(inputs) - cfg.chunk + 1, cfg.chunk):
        forecast, state = model(inputs[begin:begin + cfg.chunk], state)
        loss = (forecast - targets[begin:begin + cfg.chunk]).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    return total / (len(inputs) // cfg.chunk)


@torch.no_grad()
def test_error(model, inputs, targets, cfg):
    """The stream is replayed from its first day, and only the last days are scored."""
    forecast, _ = model(inputs, model.start(inputs.shape[1]))
    return (forecast - targets)[-cfg.test_days:].square().mean().item()


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    generator = torch.Generator().manual_seed(cfg.seed + 100)
    inputs, targets = simulate(cfg, generator)
    train_x, train_y = inputs[: cfg.days], targets[: cfg.days]
    model = GaugeModel(inputs.shape[-1], cfg.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    for epoch in range(cfg.epochs):
        loss = train_epoch(model, optimizer, train_x, train_y, cfg)
        schedule.step()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  train {loss:.4f}  test {test_error(model, inputs, targets, cfg):.4f}")
    persistence = (inputs[..., 2] - targets)[-cfg.test_days:].square().mean().item()
    print(f"persistence forecast {persistence:.4f}")
    return model, test_error(model, inputs, targets, cfg), inputs, targets


if __name__ == "__main__":
    model, final, inputs, targets = main()
