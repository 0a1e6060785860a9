"""Normalising flow on a pinwheel: data-dependent ActNorm, LU-parametrised mixing, zero-initialised couplings, recomputed activations."""
import math

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def pinwheel(n, arms=5):
    arm = torch.randint(arms, (n,))
    radial = 1.0 + 0.25 * torch.randn(n)
    across = 0.1 * torch.randn(n)
    angle = 2 * math.pi * arm / arms + 0.6 * torch.exp(radial - 1)
    x = radial * angle.cos() - across * angle.sin()
    y = radial * angle.sin() + across * angle.cos()
    return 2.0 * torch.stack([x, y], dim=1) + 0.7


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.register_buffer("initialised", torch.tensor(False))

    def forward(self, x):
        if not self.initialised:
            self.log_scale.data.copy_(-x.detach().std(dim=0).log())
            self.shift.data.copy_(-x.detach().mean(dim=0))
            self.initialised.fill_(True)
        return (x + self.shift) * self.log_scale.exp(), self.log_scale.sum()


class Mixing(nn.Module):
    def __init__(self, dim):
        super().__init__()
        q, _ = torch.linalg.qr(torch.randn(dim, dim))
        permutation, lower, upper = torch.linalg.lu(q)
        diagonal = upper.diagonal()
        self.register_buffer("permutation", permutation)
        self.register_buffer("sign", diagonal.sign())
        self.register_buffer("strict", torch.ones(dim, dim).tril(-1))
        self.lower = nn.Parameter(lower * self.strict)
        self.upper = nn.Parameter(upper * self.strict.t())
        self.log_diagonal = nn.Parameter(diagonal.abs().log())

    def forward(self, x):
        lower = self.lower * self.strict + torch.eye(len(self.sign))
        upper = self.upper * self.strict.t() + torch.diag(self.sign * self.log_diagonal.exp())
        return x @ (self.permutation @ lower @ upper).t(), self.log_diagonal.sum()


class Coupling(nn.Module):
    def __init__(self, mask, hidden=48):
        super().__init__()
        self.register_buffer("mask", mask)
        self.body = nn.Sequential(nn.Linear(len(mask), hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 2 * len(mask))
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.limit = nn.Parameter(torch.zeros(len(mask)))

    def forward(self, x):
        raw, shift = self.head(self.body(x * self.mask)).chunk(2, dim=1)
        free = 1 - self.mask
        log_scale = free * self.limit.exp() * torch.tanh(raw)
        return x * log_scale.exp() + free * shift, log_scale.sum(dim=1)


class Flow(nn.Module):
    def __init__(self, depth=5):
        super().__init__()
        masks = torch.eye(2)
        self.blocks = nn.ModuleList(
            nn.ModuleList([ActNorm(2), Mixing(2), Coupling(masks[i % 2].clone())]) for i in range(depth))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for norm, mixing, coupling in self.blocks:
            for layer in (norm, mixing):
                x, log_det = layer(x)
                total = total + log_det
            x, log_det = checkpoint(coupling, x, use_reentrant=False)
            total = total + log_det
        return total - 0.5 * x.pow(2).sum(dim=1) - math.log(2 * math.pi)


if __name__ == "__main__":
    torch.manual_seed(12)
    train, test = pinwheel(5000), pinwheel(1000)
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=160)
    for step in range(1, 161):
        loss = -flow.log_prob(train[torch.randint(len(train), (192,))]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            with torch.no_grad():
                print(f"{step:4d}  train {loss.item():.3f}  test {-flow.log_prob(test).mean().item():.3f}")
