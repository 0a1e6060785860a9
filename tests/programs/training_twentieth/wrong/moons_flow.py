"""A small Glow-like flow (activation norm, coupling, permutation) on pairs of crescent-shaped sensor readings.

The activation norm starts from the statistics of the first batch, as in Kingma & Dhariwal (2018), so that every
channel leaves the layer with zero mean and unit variance.
"""
import math

import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)


def crescents(n):
    side = torch.randint(0, 2, (n,)).float()
    t = torch.rand(n) * math.pi
    x = torch.where(side == 0, t.cos(), 1 - t.cos())
    y = torch.where(side == 0, t.sin(), 0.5 - t.sin())
    points = torch.stack([x, y], dim=1) + 0.06 * torch.randn(n, 2)
    return points * torch.tensor([40.0, 0.5]) + torch.tensor([120.0, -3.0])


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if self.training and not self.ready:
            with torch.no_grad():
                mean, std = x.mean(0), x.std(0)
            self.shift = nn.Parameter(-mean)
            self.log_scale = nn.Parameter(-(std + 1e-6).log())
            self.ready.fill_(True)
        y = (x + self.shift) * self.log_scale.exp()
        return y, self.log_scale.sum().expand(len(x))


class Coupling(nn.Module):
    """Additive coupling: the second half moves by a function of the first."""

    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return torch.cat([b + self.net(a), a], dim=1), torch.zeros(len(x))


class Flow(nn.Module):
    def __init__(self, depth=6, dim=2):
        super().__init__()
        self.steps = nn.ModuleList()
        for _ in range(depth):
            self.steps.append(ActNorm(dim))
            self.steps.append(Coupling())
        self.steps.append(ActNorm(dim))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for step in self.steps:
            x, log_det = step(x)
            total = total + log_det
        base = -0.5 * (x.pow(2) + math.log(2 * math.pi)).sum(1)
        return base + total


def main():
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=600)
    held_out = crescents(2000)

    flow.train()
    for step in range(1, 601):
        loss = -flow.log_prob(crescents(256)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step == 1 or step % 150 == 0:
            print(f"step {step:4d}  nll {loss.item():.3f}")

    flow.eval()
    with torch.no_grad():
        nll = -flow.log_prob(held_out).mean().item()
    print(f"held-out nll {nll:.3f} nats ({nll / 2 / math.log(2):.3f} bits per dimension)")
    return flow, optimizer, nll


if __name__ == "__main__":
    flow, optimizer, nll = main()
