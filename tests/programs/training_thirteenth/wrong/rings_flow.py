"""Additive coupling flow (NICE couplings with ActNorm between them) on a tilted two-ring density, trained by maximum likelihood."""
import math

import torch
from torch import nn

torch.manual_seed(11)

DIM = 2
HIDDEN = 32
BATCH = 256
STEPS = 500


def sample_rings(n):
    angle = 2 * math.pi * torch.rand(n)
    radius = torch.where(torch.rand(n) < 0.5, 1.0, 2.2) + 0.08 * torch.randn(n)
    xy = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    tilt = torch.tensor([[3.0, 0.5], [0.0, 0.4]])
    return xy @ tilt + torch.tensor([4.0, -1.5])


class ActNorm(nn.Module):
    """Per-channel affine map; starts at zero mean and unit variance of the first batch."""

    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.initialized = False

    def initialize(self, x):
        with torch.no_grad():
            mean = x.mean(dim=0)
            std = x.std(dim=0).clamp(min=1e-4)
        self.shift = nn.Parameter(-mean)
        self.log_scale = nn.Parameter(-std.log())
        self.initialized = True

    def forward(self, x):
        if not self.initialized:
            self.initialize(x)
        z = (x + self.shift) * self.log_scale.exp()
        return z, self.log_scale.sum().expand(x.shape[0])


class Coupling(nn.Module):
    def __init__(self, dim, flip):
        super().__init__()
        self.flip = flip
        half = dim // 2
        self.net = nn.Sequential(nn.Linear(half, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                                 nn.Linear(HIDDEN, half))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        b = b + self.net(a)
        pair = (b, a) if self.flip else (a, b)
        return torch.cat(pair, dim=1), x.new_zeros(x.shape[0])


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(depth):
            self.layers.append(ActNorm(DIM))
            self.layers.append(Coupling(DIM, flip=i % 2 == 1))

    def log_prob(self, x):
        total = torch.zeros(x.shape[0])
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        base = -0.5 * x.pow(2).sum(dim=1) - 0.5 * DIM * math.log(2 * math.pi)
        return base + total


def main():
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    held_out = sample_rings(4000)
    for step in range(STEPS):
        loss = -flow.log_prob(sample_rings(BATCH)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print(f"step {step:4d}  nll {loss.item():.4f}")
    with torch.no_grad():
        nll = -flow.log_prob(held_out).mean().item()
    print(f"held-out nll {nll:.4f}")
    return nll


if __name__ == "__main__":
    final_nll = main()
