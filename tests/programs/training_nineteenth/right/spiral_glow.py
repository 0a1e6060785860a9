"""A small Glow (Kingma & Dhariwal, 2018) on four-dimensional spirals: actnorm, LU-decomposed mixing, affine coupling."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)

DIM, LEVELS, BATCH, STEPS = 4, 4, 200, 450


def spirals(n):
    t = 1 + 4 * torch.rand(n)
    side = torch.where(torch.rand(n) < 0.5, 1.0, -1.0)
    xy = side[:, None] * torch.stack([t * torch.cos(t), t * torch.sin(t)], dim=1)
    z = torch.stack([t * side, t ** 2 / 5], dim=1)
    return torch.cat([xy, z], dim=1) + 0.15 * torch.randn(n, DIM)


class ActNorm(nn.Module):
    """Shift and scale; the first batch sets them so that its outputs are standardised."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(DIM))
        self.log_scale = nn.Parameter(torch.zeros(DIM))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.shift.copy_(-x.mean(dim=0))
                self.log_scale.copy_(-x.std(dim=0).log())
                self.ready.fill_(True)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum().expand(len(x))


class Mixing(nn.Module):
    """W = P L (U + diag(s)); the permutation and the signs of s stay as drawn."""

    def __init__(self):
        super().__init__()
        p, low, up = torch.linalg.lu(torch.linalg.qr(torch.randn(DIM, DIM))[0])
        s = torch.diagonal(up)
        self.register_buffer("p", p)
        self.register_buffer("sign", s.sign())
        self.low, self.up = nn.Parameter(low), nn.Parameter(up)
        self.log_s = nn.Parameter(s.abs().log())

    def weight(self):
        low = self.low.tril(-1) + torch.eye(DIM)
        return self.p @ low @ (self.up.triu(1) + torch.diag(self.sign * self.log_s.exp()))

    def forward(self, x):
        return x @ self.weight().T, self.log_s.sum().expand(len(x))


class Coupling(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM // 2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, DIM))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        raw, t = self.net(a).chunk(2, dim=1)
        log_s = F.logsigmoid(raw + 2)
        return torch.cat([a, b * log_s.exp() + t], dim=1), log_s.sum(dim=1)


class Glow(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList(m for _ in range(LEVELS) for m in (ActNorm(), Mixing(), Coupling()))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.steps:
            x, logdet = layer(x)
            total = total + logdet
        return total - 0.5 * (x ** 2).sum(dim=1) - 0.5 * DIM * math.log(2 * math.pi)


flow = Glow()
with torch.no_grad():
    flow.log_prob(spirals(1000))
optimizer = torch.optim.Adam(flow.parameters())
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=STEPS)
for step in range(STEPS):
    loss = -flow.log_prob(spirals(BATCH)).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 150 == 149:
        print(f"step {step + 1}  nll {loss.item():.3f}")

x = spirals(1000)
with torch.no_grad():
    print(f"test nll {-flow.log_prob(x).mean().item():.3f}")
