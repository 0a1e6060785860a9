import math

import torch
from torch import nn
import torch.nn.functional as F


class LoadForecaster(nn.Module):
    def __init__(self, history=24, horizon=6):
        super().__init__()
        self.history, self.horizon = history, horizon
        self.conv = nn.Conv1d(1, 8, 5, padding=2)
        self.out = nn.Linear(8 * history, horizon)

    def forward(self, x):
        return self.out(torch.tanh(self.conv(x[:, None])).flatten(1))


def demand(days, g):
    hours = torch.arange(24 * days, dtype=torch.float32)
    season = torch.sin(2 * math.pi * hours / 24) + 0.3 * torch.sin(2 * math.pi * hours / 168)
    return season + 0.1 * torch.randn(len(hours), generator=g)


def to_windows(series, history, horizon):
    rows = series.unfold(0, history + horizon, horizon)
    return rows[:, :history], rows[:, history:]


class Loop:
    def __init__(self, model, micro=8, accumulate=4, lr=3e-3):
        self.model = model
        self.micro, self.accumulate = micro, accumulate
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.updates = 0

    def batches(self, x, y):
        return list(zip(x.split(self.micro), y.split(self.micro)))

    def epoch(self, x, y):
        self.model.train()
        self.opt.zero_grad()
        seen = 0.0
        for i, (xb, yb) in enumerate(self.batches(x, y), start=1):
            loss = F.smooth_l1_loss(self.model(xb), yb)
            (loss / self.accumulate).backward()
            seen += loss.item() * len(xb)
            if i % self.accumulate == 0:
                self.opt.step()
                self.opt.zero_grad()
                self.updates += 1
        return seen / len(x)


def prepare(model, g):
    series = demand(30, g)
    x, y = to_windows(series, model.history, model.horizon)
    return x[:112].contiguous(), y[:112].contiguous()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = LoadForecaster()
    x, y = prepare(model, torch.Generator().manual_seed(6))
    loop = Loop(model)
    for e in range(5):
        print(f"epoch {e} loss {loop.epoch(x, y):.4f} updates {loop.updates}")
