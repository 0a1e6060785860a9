"""Normalizing flow (activation norm, fixed orthogonal mixing, affine coupling) on a two-moons density in four dimensions."""
import math

import torch
from torch import nn

torch.manual_seed(2)

DIM = 4


def two_moons(n):
    half = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, half.cos(), 1 - half.cos())
    y = torch.where(upper, half.sin(), 0.5 - half.sin())
    moons = 3.0 * torch.stack([x, y], 1) + 5.0
    rest = torch.stack([x * y, x - y], 1) * 0.5
    return torch.cat([moons, rest], 1) + 0.08 * torch.randn(n, DIM)


class ActNorm(nn.Module):
    """Scale and shift whose start values come from the first batch (as in Glow)."""

    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.register_buffer("initialized", torch.tensor(False))

    def forward(self, x):
        if not self.initialized:
            with torch.no_grad():
                std = x.std(0) + 1e-5
                self.log_scale.data.copy_(-std.log())
                self.shift.data.copy_(-x.mean(0) / std)
                self.initialized.fill_(True)
        z = x * self.log_scale.exp() + self.shift
        return z, self.log_scale.sum()


class FixedRotation(nn.Module):
    """Random orthogonal mixing; |det| = 1, so there is no log-determinant to add."""

    def __init__(self, dim):
        super().__init__()
        q, _ = torch.linalg.qr(torch.randn(dim, dim))
        self.weight = nn.Parameter(q, requires_grad=False)

    def forward(self, x):
        return x @ self.weight, 0.0


class Coupling(nn.Module):
    def __init__(self, dim, width=64):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 2 * (dim - self.half)))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x[:, :self.half], x[:, self.half:]
        log_s, t = self.net(a).chunk(2, dim=1)
        log_s = 1.5 * torch.tanh(log_s)
        return torch.cat([a, b * log_s.exp() + t], 1), log_s.sum(1)


class Flow(nn.Module):
    def __init__(self, dim=DIM, blocks=5):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(blocks):
            self.layers.extend([ActNorm(dim), FixedRotation(dim), Coupling(dim)])

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        base = -0.5 * (x ** 2).sum(1) - 0.5 * DIM * math.log(2 * math.pi)
        return base + total


train, test = two_moons(4096), two_moons(2048)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
flow.log_prob(train[:512])  # sets the activation norms; the result is not needed

for epoch in range(12):
    for batch in train[torch.randperm(len(train))].split(128):
        loss = -flow.log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        for group in optimizer.param_groups:
            group["lr"] *= 0.5
        with torch.no_grad():
            print(f"epoch {epoch + 1:2d}  train nll {loss.item():.3f}  test nll {-flow.log_prob(test).mean().item():.3f}")

gauss = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.T))
print(f"test nll of a fitted Gaussian: {-gauss.log_prob(test).mean().item():.3f}")
