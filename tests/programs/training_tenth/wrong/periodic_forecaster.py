import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
WINDOW, AHEAD, CHANNELS = 48, 8, 16


class SnakeFunction(torch.autograd.Function):
    """x + sin(a x)^2 / a with one frequency per channel; keeps the input only."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.x = x.detach()
        ctx.save_for_backward(a)
        return x + torch.sin(a * x).square() / a

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.x
        (a,) = ctx.saved_tensors
        wave = torch.sin(2 * a * x)
        grad_x = grad_output * (1 + wave)
        grad_a = grad_output * (x * wave / a - torch.sin(a * x).square() / a ** 2)
        return grad_x, grad_a.sum(dim=(0, 2), keepdim=True)


class Snake(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x):
        return SnakeFunction.apply(x, self.a)


class Block(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.enter = Snake(channels)
        self.conv = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.leave = Snake(channels)
        self.project = nn.Conv1d(channels, channels, 1)

    def forward(self, stream):
        h = self.conv(self.enter(stream))
        stream += self.project(self.leave(h))
        return stream


class Forecaster(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.stem = nn.Conv1d(1, CHANNELS, 5, padding=2)
        self.blocks = nn.ModuleList(Block(CHANNELS, 2 ** i) for i in range(depth))
        self.head = nn.Linear(CHANNELS, AHEAD)

    def forward(self, series):
        stream = self.stem(series.unsqueeze(1))
        for block in self.blocks:
            stream = block(stream)
        return self.head(stream[:, :, -12:].mean(dim=2))


def make_series(count):
    t = torch.arange(WINDOW + AHEAD).float()
    period = torch.empty(count, 1).uniform_(8, 20)
    phase = torch.empty(count, 1).uniform_(0, 2 * math.pi)
    slope = torch.empty(count, 1).uniform_(-0.02, 0.02)
    angle = 2 * math.pi * t / period + phase
    series = torch.sin(angle) + 0.4 * torch.sin(2 * angle) + slope * (t - WINDOW / 2)
    series = series + 0.05 * torch.randn_like(series)
    return series[:, :WINDOW], series[:, WINDOW:]


def evaluate(model, past, future):
    model.eval()
    with torch.no_grad():
        return F.mse_loss(model(past), future).item()


past, future = make_series(1200)
test_past, test_future = make_series(300)
model = Forecaster()
steps, batch = 300, 64
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
model.train()
running = None
for step in range(steps):
    idx = torch.randint(len(past), (batch,))
    loss = F.mse_loss(model(past[idx]), future[idx])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
print(f"train error {running:.4f}  test error {evaluate(model, test_past, test_future):.4f}  "
      f"variance {test_future.var().item():.3f}")
