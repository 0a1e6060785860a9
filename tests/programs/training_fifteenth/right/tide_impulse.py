"""Tide prediction; the gradient buffers themselves carry the momentum from one step to the next."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 31
BETA = 0.9
RATE = 0.02
CONSTITUENTS = (12.42, 12.00, 23.93, 25.82)
HISTORY = 48


def gauge(n, rng):
    t = np.arange(n, dtype=np.float64)
    level = sum(a * np.sin(2 * np.pi * t / p + f)
                for a, p, f in zip((1.0, 0.4, 0.3, 0.2), CONSTITUENTS, rng.uniform(0, 6.28, 4)))
    surge = np.zeros(n)
    for i in range(1, n):
        surge[i] = 0.95 * surge[i - 1] + 0.05 * rng.standard_normal()
    shallow = 0.15 * level**2
    return (level + shallow + surge).astype(np.float32)


def lagged(series, lead=3):
    view = np.lib.stride_tricks.sliding_window_view(series, HISTORY + lead).copy()
    data = torch.tensor(view)
    return data[:, :HISTORY], data[:, -1]


class TideNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.hidden = nn.Linear(HISTORY, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        self.skip = nn.Linear(HISTORY, 1, bias=False)

    def forward(self, x):
        h = torch.tanh(self.mix(torch.tanh(self.hidden(x))))
        return (self.out(h) + self.skip(x)).squeeze(-1)


def fade(params, beta):
    """p.grad <- beta * p.grad, so that the next backward() adds its gradient on top (heavy ball)."""
    for p in params:
        if p.grad is not None:
            p.grad.mul_(beta)


def train(model, x, y, epochs=12, batch=32):
    params = list(model.parameters())
    opt = torch.optim.SGD(params, lr=RATE)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch):
            fade(params, BETA)
            loss = F.mse_loss(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        if epoch % 3 == 2:
            print(f"epoch {epoch:2d}  mse {total / len(x):.5f}  lr {sched.get_last_lr()[0]:.4f}")
    return total / len(x)


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    series = gauge(3000, rng)
    mean, std = series[:2200].mean(), series[:2200].std()
    x, y = lagged((series[:2200] - mean) / std)
    x_test, y_test = lagged((series[2200:] - mean) / std)
    model = TideNet()
    final = train(model, x, y)
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(x_test), y_test).item()
        last = F.mse_loss(x_test[:, -1], y_test).item()
    print(f"train mse {final:.5f}  test mse {error:.5f}  last-level mse {last:.5f}")


if __name__ == "__main__":
    main()
