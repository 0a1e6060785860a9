"""Next-hour flow on a ring of traffic sensors with a dilated causal convolution net."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SENSORS, WINDOW, CHANNELS = 12, 32, 24


class BoundedReLU(torch.autograd.Function):
    """clamp(x, 0, cap) for activations that stay in a fixed range."""

    @staticmethod
    def forward(ctx, x, cap):
        ctx.save_for_backward(x)
        ctx.cap = cap
        return x.clamp(0.0, cap)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_output[(x < 0.0) | (x > ctx.cap)] = 0.0
        return grad_output, None


class ResidualBlock(nn.Module):
    def __init__(self, channels, dilation, cap=6.0):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.cap = cap

    def forward(self, x):
        h = self.conv(F.pad(x, (self.pad, 0)))
        return x + BoundedReLU.apply(h, self.cap)


class FlowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv1d(SENSORS, CHANNELS, 1)
        self.blocks = nn.ModuleList(ResidualBlock(CHANNELS, d) for d in (1, 2, 4, 8))
        self.head = nn.Linear(CHANNELS, SENSORS)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h[..., -1])


def make_flow(hours=1000):
    t = torch.arange(hours).float()
    phase = torch.linspace(0, 2, SENSORS)[:, None]
    day = torch.sin(2 * math.pi * t / 24 - phase) + 0.5 * torch.sin(4 * math.pi * t / 24 - 2 * phase)
    shock = torch.zeros(SENSORS, hours)
    noise = 0.25 * torch.randn(SENSORS, hours)
    for i in range(1, hours):
        shock[:, i] = 0.8 * torch.roll(shock[:, i - 1], 1) + noise[:, i]
    flow = day + shock
    return (flow - flow.mean()) / flow.std()


def batch(flow, low, high, size):
    start = torch.randint(low, high - WINDOW - 1, (size,))
    x = torch.stack([flow[:, s : s + WINDOW] for s in start.tolist()])
    y = torch.stack([flow[:, s + WINDOW] for s in start.tolist()])
    return x, y


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        error = (model(x) - y).abs().mean().item()
    model.train()
    return error


def main():
    torch.manual_seed(3)
    flow = make_flow()
    split = 800
    x_val, y_val = batch(flow, split, flow.shape[1], 96)

    model = FlowNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)

    for step in range(100):
        x, y = batch(flow, 0, split, 24)
        loss = F.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 25 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}  val MAE {evaluate(model, x_val, y_val):.4f}")

    naive = (x_val[..., -1] - y_val).abs().mean().item()
    print(f"final val MAE {evaluate(model, x_val, y_val):.4f}  persistence {naive:.4f}")
    return model


if __name__ == "__main__":
    model = main()
