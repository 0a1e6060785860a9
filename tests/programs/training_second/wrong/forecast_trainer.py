import math

import torch
from torch import nn


class WarmupCosine:
    def __init__(self, optimizer, peak, warmup, total, floor=1e-5):
        self.optimizer = optimizer
        self.peak, self.warmup, self.total, self.floor = peak, warmup, total, floor
        self.last = 0
        self.apply()

    def value(self):
        if self.last < self.warmup:
            return self.peak * (self.last + 1) / self.warmup
        progress = (self.last - self.warmup) / max(1, self.total - self.warmup)
        return self.floor + 0.5 * (self.peak - self.floor) * (1 + math.cos(math.pi * progress))

    def apply(self):
        self.optimizer.defaults["lr"] = self.value()

    def step(self):
        self.last += 1
        self.apply()


class Forecaster(nn.Module):
    def __init__(self, lags, horizon, width=40):
        super().__init__()
        self.linear = nn.Linear(lags, horizon)
        self.correction = nn.Sequential(nn.Linear(lags, width), nn.GELU(), nn.Linear(width, horizon))

    def forward(self, x):
        level = x.mean(dim=1, keepdim=True)
        return level + self.linear(x - level) + self.correction(x - level)


class Trainer:
    def __init__(self, model, series, lags, horizon, steps):
        self.model, self.lags, self.horizon, self.steps = model, lags, horizon, steps
        windows = series.unfold(0, lags + horizon, 1)
        self.train_windows, self.test_windows = windows[:400], windows[420:]
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
        self.schedule = WarmupCosine(self.optimizer, peak=2e-2, warmup=10, total=steps)

    def loss(self, windows):
        past, future = windows.split([self.lags, self.horizon], dim=1)
        return nn.functional.l1_loss(self.model(past), future)

    def run(self):
        for step in range(self.steps):
            rows = torch.randint(0, len(self.train_windows), (32,))
            loss = self.loss(self.train_windows[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            if step % 20 == 0:
                print(f"step {step:3d} lr {self.schedule.value():.5f} loss {loss.item():.4f}")
        with torch.no_grad():
            print(f"test mae {self.loss(self.test_windows).item():.4f}")


torch.manual_seed(30)
clock = torch.arange(600.0)
demand = torch.sin(clock * 6.28 / 24) + 0.4 * torch.sin(clock * 6.28 / 168) + 0.1 * torch.randn(600)
trainer = Trainer(Forecaster(24, 6), demand, lags=24, horizon=6, steps=100)
trainer.run()
