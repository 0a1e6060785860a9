"""Density estimation for detector hits with a small coupling flow (unconditional, 6 features)."""
import math

import torch
from torch import nn


class Affine(nn.Module):
    """Per-feature shift and scale whose starting values are taken from the first batch."""

    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def calibrate(self, x):
        self.shift = nn.Parameter(-x.mean(0))
        self.log_scale = nn.Parameter(-torch.log(x.std(0) + 1e-6))
        self.ready.fill_(True)

    def forward(self, x):
        if not self.ready:
            self.calibrate(x)
        y = (x + self.shift) * self.log_scale.exp()
        return y, self.log_scale.sum().expand(len(x))


class Coupling(nn.Module):
    def __init__(self, dim, parity, hidden=48):
        super().__init__()
        self.register_buffer("mask", (torch.arange(dim) % 2 == parity).float())
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * dim)
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, dim=-1)
        s = torch.tanh(s) * (1 - self.mask)
        y = x * self.mask + (1 - self.mask) * (x * s.exp() + t)
        return y, s.sum(-1)


class Flow(nn.Module):
    def __init__(self, dim, depth=4):
        super().__init__()
        layers = []
        for i in range(depth):
            layers += [Affine(dim), Coupling(dim, i % 2)]
        self.layers = nn.ModuleList(layers)
        self.dim = dim

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, ld = layer(x)
            total = total + ld
        base = -0.5 * (x ** 2).sum(-1) - 0.5 * self.dim * math.log(2 * math.pi)
        return base + total


def hits(n, gen):
    r = 3.0 + 0.3 * torch.randn(n, generator=gen)
    phi = 2 * math.pi * torch.rand(n, generator=gen)
    curv = 0.4 * torch.randn(n, generator=gen)
    x, y = r * phi.cos(), r * phi.sin()
    z = 20 + 5 * curv + torch.randn(n, generator=gen)
    energy = torch.exp(1.0 + 0.5 * torch.randn(n, generator=gen))
    time = 0.1 * z + 0.05 * torch.randn(n, generator=gen)
    return torch.stack([x, y, z, curv, energy, time], dim=1)


class Trainer:
    def __init__(self, flow, data, lr=2e-3, batch=96, seed=0):
        self.flow, self.data, self.batch = flow, data, batch
        self.opt = torch.optim.Adam(flow.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=350)
        self.gen = torch.Generator().manual_seed(seed)

    def step(self):
        pick = torch.randint(0, len(self.data), (self.batch,), generator=self.gen)
        nll = -self.flow.log_prob(self.data[pick]).mean()
        self.opt.zero_grad()
        nll.backward()
        nn.utils.clip_grad_norm_(self.flow.parameters(), 5.0)
        self.opt.step()
        self.sched.step()
        return nll.item()


if __name__ == "__main__":
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(21)
    train, test = hits(2000, generator), hits(1000, generator)
    flow = Flow(train.shape[1])
    trainer = Trainer(flow, train)
    for it in range(350):
        value = trainer.step()
        if it % 70 == 0:
            print(f"it {it:4d}  nll {value:.3f}")
    with torch.no_grad():
        print(f"held-out nll {-flow.log_prob(test).mean().item():.3f}")
