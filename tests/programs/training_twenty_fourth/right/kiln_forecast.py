"""Forecast of kiln temperatures; each parameter is updated as soon as its gradient is ready, to keep peak memory low."""
import math

import torch
from torch import nn


def firing(n, length, gen):
    """Ramp, soak and cooling of a kiln with a thermostat that switches the burner."""
    t = torch.linspace(0, 1, length)
    ramp = 0.2 + 0.3 * torch.rand(n, 1, generator=gen)
    soak = ramp + 0.2 + 0.2 * torch.rand(n, 1, generator=gen)
    top = 900 + 300 * torch.rand(n, 1, generator=gen)
    up, down = (t / ramp).clamp(max=1), torch.exp(-3 * (t - soak).clamp(min=0))
    ripple = 12 * torch.sin(2 * math.pi * 9 * t + 6 * torch.rand(n, 1, generator=gen))
    return (top * up * down + ripple + 3 * torch.randn(n, length, generator=gen)) / 1000


class Forecaster(nn.Module):
    """Residual MLP on the last `window` readings; the output is the change over the next `horizon` readings."""

    def __init__(self, window=24, horizon=6, width=48, depth=3):
        super().__init__()
        self.inp = nn.Linear(window, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
            for _ in range(depth)
        )
        self.out = nn.Linear(width, horizon)

    def forward(self, x):
        last = x[:, -1:]
        h = self.inp(x - last)
        for block in self.blocks:
            h = h + block(h)
        return last + self.out(h)


class EagerAdam:
    """One small Adam per parameter, fired from the hook that runs after its gradient has been accumulated."""

    def __init__(self, model, lr, total):
        self.lr, self.total, self.done = lr, total, 0
        self.optimizers = {p: torch.optim.Adam([p], lr=lr, foreach=False) for p in model.parameters()}
        self.handles = [p.register_post_accumulate_grad_hook(self.fire) for p in model.parameters()]

    def fire(self, param):
        optimizer = self.optimizers[param]
        optimizer.param_groups[0]["lr"] = self.lr * 0.5 * (1 + math.cos(math.pi * self.done / self.total))
        optimizer.step()
        param.grad = None

    def advance(self):
        self.done += 1

    def close(self):
        for handle in self.handles:
            handle.remove()


def windows(series, window, horizon):
    cut = series.unfold(1, window + horizon, 4).flatten(0, 1)
    return cut[:, :window], cut[:, window:]


@torch.no_grad()
def score(model, x, y):
    model.eval()
    error = (model(x) - y).abs().mean() * 1000
    naive = (x[:, -1:] - y).abs().mean() * 1000
    model.train()
    return error.item(), naive.item()


def train(epochs=8, batch=64, lr=2e-3, seed=23):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    x, y = windows(firing(120, 160, gen), 24, 6)
    x_test, y_test = windows(firing(30, 160, gen), 24, 6)
    model = Forecaster()
    steps = math.ceil(len(x) / batch)
    updater = EagerAdam(model, lr, epochs * steps)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x), generator=gen).split(batch):
            loss = (model(x[idx]) - y[idx]).abs().mean()
            loss.backward()
            updater.advance()
            total += loss.item() * len(idx)
        mae, naive = score(model, x_test, y_test)
        print(f"epoch {epoch}  train {1000 * total / len(x):6.2f} K  test {mae:6.2f} K  (last value: {naive:.2f} K)")
    updater.close()
    return model


if __name__ == "__main__":
    model = train()
