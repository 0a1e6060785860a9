"""Density estimation of six-dimensional sensor readings with a Glow-like flow: ActNorm, a permutation and affine couplings."""
import math

import torch
from torch import nn


def readings(n):
    base = torch.randn(n, 3)
    curved = torch.stack([
        base[:, 0] ** 2 + 0.3 * torch.randn(n),
        torch.sin(2 * base[:, 1]) + 0.2 * torch.randn(n),
        base[:, 0] * base[:, 2] + 0.3 * torch.randn(n),
    ], dim=1)
    return torch.cat([base, curved], dim=1) * torch.tensor([1.0, 4.0, 0.5, 2.0, 1.0, 3.0]) + 1.5


class ActNorm(nn.Module):
    """Affine layer whose first batch comes out with zero mean and unit variance."""

    def __init__(self, dim):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.ready = False

    @torch.no_grad()
    def initialize(self, x):
        self.log_scale = nn.Parameter(-torch.log(x.std(dim=0) + 1e-6))
        self.shift = nn.Parameter(-x.mean(dim=0))
        self.ready = True

    def forward(self, x):
        if not self.ready:
            self.initialize(x)
        z = (x + self.shift) * self.log_scale.exp()
        return z, self.log_scale.sum().expand(len(x))


class Shuffle(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("order", torch.randperm(dim))

    def forward(self, x):
        return x[:, self.order], x.new_zeros(len(x))


class AffineCoupling(nn.Module):
    def __init__(self, dim, hidden=48):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(
            nn.Linear(self.half, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 2 * (dim - self.half)),
        )

    def forward(self, x):
        a, b = x[:, :self.half], x[:, self.half:]
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        return torch.cat([a, b * s.exp() + t], dim=1), s.sum(dim=1)


class Flow(nn.Module):
    def __init__(self, dim, depth=4):
        super().__init__()
        self.dim = dim
        steps = []
        for _ in range(depth):
            steps += [ActNorm(dim), Shuffle(dim), AffineCoupling(dim)]
        self.steps = nn.ModuleList(steps)

    def log_prob(self, x):
        total = x.new_zeros(len(x))
        for step in self.steps:
            x, log_det = step(x)
            total = total + log_det
        prior = -0.5 * (x.pow(2).sum(dim=1) + self.dim * math.log(2 * math.pi))
        return prior + total


def fit(flow, data, steps=300, batch=128, lr=2e-3):
    optimizer = torch.optim.Adam(flow.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(1, steps + 1):
        x = data[torch.randint(len(data), (batch,))]
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], 5.0)
        optimizer.step()
        schedule.step()
        if step % 75 == 0:
            print(f"step {step:4d}  nll {loss.item():.3f}")
    return optimizer


if __name__ == "__main__":
    torch.manual_seed(3)
    train, test = readings(4000), readings(1000)
    flow = Flow(dim=6)
    optimizer = fit(flow, train)
    with torch.no_grad():
        print(f"test nll: {-flow.log_prob(test).mean().item():.3f}")
