"""Improved DDPM on a planar pattern: noise prediction plus a learned variance, trained with the hybrid objective."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

LEVELS = 40
BATCH = 128
STEPS = 200
VB_WEIGHT = 1e-3
EMA_DECAY = 0.98


def checkers(n):
    cell = torch.randint(0, 8, (n,))
    row = cell // 2
    col = 2 * (cell % 2) + row % 2
    corner = torch.stack([col, row], dim=1).float()
    return (corner + torch.rand(n, 2)) - 2.0


class Schedule:
    def __init__(self, levels):
        self.beta = torch.linspace(1e-3, 0.3, levels)
        self.bar = torch.cumprod(1 - self.beta, dim=0)
        prev = torch.cat([torch.ones(1), self.bar[:-1]])
        variance = self.beta * (1 - prev) / (1 - self.bar)
        self.post_log_var = torch.cat([variance[1:2], variance[1:]]).log()
        self.coef_x0 = self.beta * prev.sqrt() / (1 - self.bar)
        self.coef_xt = (1 - prev) * (1 - self.beta).sqrt() / (1 - self.bar)

    def reverse(self, xt, t, output):
        """Mean and log-variance of p(x_{t-1} | x_t) for a network output (noise, variance coordinate)."""
        eps, v = output.chunk(2, dim=1)
        bar = self.bar[t][:, None]
        x0 = (xt - (1 - bar).sqrt() * eps) / bar.sqrt()
        mean = self.coef_x0[t][:, None] * x0 + self.coef_xt[t][:, None] * xt
        frac = (v + 1) / 2
        log_var = frac * self.beta.log()[t][:, None] + (1 - frac) * self.post_log_var[t][:, None]
        return mean, log_var

    def bound(self, x0, xt, t, output):
        mean, log_var = self.reverse(xt, t, output)
        true_mean = self.coef_x0[t][:, None] * x0 + self.coef_xt[t][:, None] * xt
        true_log_var = self.post_log_var[t][:, None]
        kl = 0.5 * (
            log_var - true_log_var - 1 + (true_log_var - log_var).exp() + (true_mean - mean).pow(2) / log_var.exp()
        )
        nll = 0.5 * (math.log(2 * math.pi) + log_var + (x0 - mean).pow(2) / log_var.exp())
        return torch.where((t == 0)[:, None], nll, kl).sum(dim=1)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, h):
        return h + self.down(F.silu(self.up(self.norm(h))))


class Network(nn.Module):
    def __init__(self, width=80, features=16):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, features // 2)))
        self.inp = nn.Linear(2 + features, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.out = nn.Linear(width, 4)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        phase = (t.float() / LEVELS)[:, None] * self.freqs
        return self.out(F.silu(self.blocks(self.inp(torch.cat([x, phase.sin(), phase.cos()], dim=1)))))


def losses(net, schedule, x0):
    t = torch.randint(LEVELS, (len(x0),))
    noise = torch.randn_like(x0)
    bar = schedule.bar[t][:, None]
    xt = bar.sqrt() * x0 + (1 - bar).sqrt() * noise
    output = net(xt, t)
    eps, v = output.chunk(2, dim=1)
    bound = schedule.bound(x0, xt, t, torch.cat([eps.detach(), v], dim=1))
    return F.mse_loss(eps, noise), LEVELS * bound.mean()


torch.manual_seed(31)
data, schedule, net = checkers(4096), Schedule(LEVELS), Network()
averaged = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.0)
for step in range(STEPS):
    simple, bound = losses(net, schedule, data[torch.randint(len(data), (BATCH,))])
    optimizer.zero_grad()
    (simple + VB_WEIGHT * bound).backward()
    optimizer.step()
    for a, p in zip(averaged.parameters(), net.parameters()):
        a.lerp_(p.detach(), 1 - EMA_DECAY)
    if step % 50 == 0 or step == STEPS - 1:
        print(f"step {step:4d}  noise error {simple.item():.4f}  bound {bound.item():.3f}")

with torch.no_grad():
    x = torch.randn(600, 2)
    for level in reversed(range(LEVELS)):
        t = torch.full((len(x),), level)
        mean, log_var = schedule.reverse(x, t, averaged(x, t))
        x = mean + (level > 0) * (0.5 * log_var).exp() * torch.randn_like(x)
    v = averaged(x, torch.zeros(len(x), dtype=torch.long))[:, 2:]
nearest = torch.cdist(x, data).min(dim=1).values.mean().item()
print(f"distance of samples to the data {nearest:.4f}  variance coordinate at the lowest level {v.mean():.3f}")
