"""Day-ahead energy bands: gated convolutions, a custom smooth pinball loss and a Lookahead optimizer."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

HISTORY, HORIZON = 48, 12
QUANTILES = torch.tensor([0.1, 0.5, 0.9])


class SmoothPinball(torch.autograd.Function):
    """Pinball loss of error = y - forecast with a quadratic bottom of half-width delta."""

    @staticmethod
    def forward(ctx, error, tau, delta):
        side = torch.where(error < 0, 1.0 - tau, tau)
        ctx.save_for_backward(side * (error / delta).clamp(-1.0, 1.0))
        size = error.abs()
        return side * torch.where(size <= delta, error.square() / (2 * delta), size - delta / 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (slope,) = ctx.saved_tensors
        grad_error = grad_output.clone()
        grad_error.mul_(slope)
        return grad_error, None, None


def interval_score(lower, upper, y, alpha=0.2):
    """Winkler score: width plus the distance by which the value is missed."""
    below = (y < lower).float()
    above = (y > upper).float()
    return (upper - lower) + 2 / alpha * (below * (lower - y) + above * (y - upper))


class BandNet(nn.Module):
    def __init__(self, channels=20):
        super().__init__()
        self.inp = nn.Conv1d(1, channels, 1)
        self.gates = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 3, dilation=d) for d in (1, 3, 9))
        self.out = nn.Linear(channels, 3 * HORIZON)

    def forward(self, x):
        h = self.inp(x[:, None])
        for conv in self.gates:
            h = h + F.glu(conv(F.pad(h, (2 * conv.dilation[0], 0))), dim=1)
        mid, down, up = self.out(h[..., -1]).view(-1, HORIZON, 3).unbind(-1)
        return torch.stack([mid - F.softplus(down), mid, mid + F.softplus(up)], dim=-1)


class Lookahead:
    """k fast steps of the inner optimizer, then one step of the slow weights towards the fast ones."""

    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha, self.count = optimizer, k, alpha, 0
        self.fast = [p for group in optimizer.param_groups for p in group["params"]]
        self.slow = [p.detach().clone() for p in self.fast]

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()
        self.count += 1
        if self.count % self.k == 0:
            for slow, fast in zip(self.slow, self.fast):
                slow.add_(fast.data - slow, alpha=self.alpha)
                fast.data.copy_(slow)


def make_energy(hours=1600):
    t = torch.arange(hours).float()
    spread = 0.15 + 0.25 * (torch.sin(2 * math.pi * t / 24) > 0.3).float()
    return torch.sin(2 * math.pi * t / 24) + 0.4 * torch.sin(2 * math.pi * t / 12 + 1) + spread * torch.randn(hours)


def windows(energy, start):
    index = start[:, None] + torch.arange(HISTORY + HORIZON)
    return energy[index].split([HISTORY, HORIZON], dim=1)


def main():
    torch.manual_seed(6)
    energy = make_energy()
    split = 1250
    x_val, y_val = windows(energy, torch.arange(split, energy.numel() - HISTORY - HORIZON, 3))
    model = BandNet()
    optimizer = Lookahead(torch.optim.Adam(model.parameters(), lr=6e-3))
    for step in range(90):
        x, y = windows(energy, torch.randint(0, split - HISTORY - HORIZON, (24,)))
        bands = model(x)
        pinball = SmoothPinball.apply(y[..., None] - bands, QUANTILES, 0.02).mean()
        score = interval_score(bands[..., 0], bands[..., 2], y).mean()
        loss = pinball + 0.1 * score
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step:3d}  pinball {pinball.item():.4f}  interval score {score.item():.4f}")

    model.eval()
    with torch.no_grad():
        bands = model(x_val)
        inside = ((y_val >= bands[..., 0]) & (y_val <= bands[..., 2])).float().mean().item()
        mae = (bands[..., 1] - y_val).abs().mean().item()
    print(f"validation: MAE {mae:.3f}  share inside the 80% band {inside:.3f}")
    return model


if __name__ == "__main__":
    model = main()
