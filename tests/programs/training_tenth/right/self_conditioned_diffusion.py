"""Diffusion on two-dimensional spirals with self-conditioning, a zero-initialised output and averaged weights."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
STEPS, WIDTH = 50, 96


class TimeEmbedding(nn.Module):
    def __init__(self, half=16):
        super().__init__()
        self.register_buffer("frequencies", torch.exp(torch.linspace(0.0, -math.log(1000.0), half)))

    def forward(self, t):
        angle = t[:, None].float() * self.frequencies
        return torch.cat([angle.sin(), angle.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = TimeEmbedding()
        self.enter = nn.Linear(2 + 2 + 32, WIDTH)
        self.middle = nn.ModuleList(nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.SiLU()) for _ in range(3))
        self.leave = nn.Linear(WIDTH, 2)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x, t, guess):
        h = self.enter(torch.cat([x, guess, self.time(t)], dim=1))
        for block in self.middle:
            h = h + block(h)
        return self.leave(h)


class Average:
    def __init__(self, net, decay=0.99):
        self.decay = decay
        self.net = copy.deepcopy(net).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, net):
        torch._foreach_lerp_(list(self.net.parameters()), [p.detach() for p in net.parameters()], 1 - self.decay)


betas = torch.linspace(1e-3, 0.2, STEPS)
signal = torch.cumprod(1 - betas, dim=0)


def spiral(count):
    turn = 3 * math.pi * torch.rand(count).sqrt()
    return torch.stack([turn.cos(), turn.sin()], dim=1) * (turn / 6)[:, None] + 0.03 * torch.randn(count, 2)


def training_loss(net, clean):
    t = torch.randint(0, STEPS, (len(clean),))
    a = signal[t][:, None]
    noisy = a.sqrt() * clean + (1 - a).sqrt() * torch.randn_like(clean)
    guess = torch.zeros_like(clean)
    if torch.rand(()) < 0.5:
        with torch.no_grad():
            guess = net(noisy, t, guess)
    return F.mse_loss(net(noisy, t, guess), clean)


@torch.no_grad()
def generate(net, count):
    x, guess = torch.randn(count, 2), torch.zeros(count, 2)
    for step in reversed(range(STEPS)):
        guess = net(x, torch.full((count,), step), guess)
        a = signal[step]
        before = signal[step - 1] if step > 0 else torch.ones(())
        mean = (before.sqrt() * betas[step] * guess + (1 - betas[step]).sqrt() * (1 - before) * x) / (1 - a)
        x = mean + (betas[step] * (1 - before) / (1 - a)).sqrt() * torch.randn_like(x)
    return x


def distance(a, b):
    d = torch.cdist(a, b)
    return (d.min(dim=1).values.mean() + d.min(dim=0).values.mean()).item() / 2


net = Denoiser()
average = Average(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
recent = []
for step in range(1500):
    loss = training_loss(net, spiral(256))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(net)
    recent.append(loss.detach())
target = spiral(1000)
print(f"loss start {torch.stack(recent[:10]).mean():.3f} end {torch.stack(recent[-200:]).mean():.3f}")
print(f"distance to data: noise {distance(torch.randn(1000, 2), target):.3f}", end=" ")
print(f"generated {distance(generate(average.net, 1000), target):.3f} real {distance(spiral(1000), target):.3f}")
