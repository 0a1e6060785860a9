"""One-step forecasts of river levels at many gauges: a stateful GRU over long series, in windows, with averaged weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

GAUGES = 24
HOURS = 300
WINDOW = 24
EPOCHS = 10


def make_levels(generator, hours=HOURS):
    """Rain falls now and then; the level follows it with a delay and drains slowly."""
    rain = (torch.rand(GAUGES, hours, generator=generator) < 0.06).float()
    rain = rain * torch.rand(GAUGES, hours, generator=generator) * 2
    tide = 0.3 * torch.sin(2 * math.pi * torch.arange(hours) / 24)
    level = torch.zeros(GAUGES, hours)
    for t in range(4, hours):
        level[:, t] = 0.93 * level[:, t - 1] + rain[:, t - 4]
    return torch.stack([level + tide + 0.02 * torch.randn(GAUGES, hours, generator=generator), rain], -1)


class LevelModel(nn.Module):
    """Starts as persistence: the head is zero, so that the first forecast is the last level."""

    def __init__(self, hidden=16):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x, state=None):
        out, state = self.gru(x, state)
        change = self.head(self.norm(out)).squeeze(-1)
        return x[..., 0] + change, state


def train_epoch(model, average, optimizer, series):
    state = None
    total, count = 0.0, 0
    for start in range(0, series.shape[1] - WINDOW, WINDOW):
        past = series[:, start:start + WINDOW]
        ahead = series[:, start + 1:start + WINDOW + 1, 0]
        forecast, state = model(past, state)
        state = state.detach()
        loss = F.mse_loss(forecast, ahead)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(model)
        total += loss.detach()
        count += 1
    return total.item() / count


@torch.no_grad()
def evaluate(model, series):
    model.eval()
    forecast, _ = model(series[:, :-1])
    model.train()
    return F.mse_loss(forecast, series[:, 1:, 0]).item()


def main():
    torch.manual_seed(10)
    generator = torch.Generator().manual_seed(5)
    train, test = make_levels(generator), make_levels(generator, 150)
    model = LevelModel()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    print(f"persistence        test {evaluate(model, test):.5f}")
    for epoch in range(1, EPOCHS + 1):
        loss = train_epoch(model, average, optimizer, train)
        schedule.step()
        if epoch % 2 == 0:
            print(f"epoch {epoch:2d}  train {loss:.5f}  test {evaluate(model, test):.5f}  averaged {evaluate(average, test):.5f}")
    final = LevelModel()
    final.load_state_dict(average.module.state_dict())
    print(f"final model        test {evaluate(final, test):.5f}")
    return model, average, final, evaluate(final, test)


if __name__ == "__main__":
    model, average, final, test_error = main()
