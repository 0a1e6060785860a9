"""Denoising diffusion for points on two rings, with self-conditioning and averaged weights for sampling."""
import contextlib
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)


def make_rings(count):
    kind = torch.randint(0, 2, (count,))
    angle = torch.rand(count) * 2 * math.pi
    radius = torch.tensor([0.6, 1.4])[kind] + 0.03 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), kind


class Film(nn.Module):
    def __init__(self, width, cond):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.mod = nn.Linear(cond, 2 * width)
        self.out = nn.Linear(width, width)
        nn.init.zeros_(self.out.weight)

    def forward(self, h, c):
        scale, shift = self.mod(c).chunk(2, -1)
        return h + self.out(F.silu(self.lin(h) * (1 + scale) + shift))


class Denoiser(nn.Module):
    def __init__(self, width=64, blocks=3):
        super().__init__()
        self.inlet = nn.Linear(4, width)
        self.kind = nn.Embedding(2, 16)
        self.register_buffer("freqs", 2.0 ** torch.arange(4) * math.pi / 2)
        self.blocks = nn.ModuleList(Film(width, 24) for _ in range(blocks))
        self.outlet = nn.Linear(width, 2)

    def forward(self, x, t, kind, known):
        angle = t[:, None] * self.freqs
        h, c = self.inlet(torch.cat([x, known], 1)), torch.cat([angle.sin(), angle.cos(), self.kind(kind)], 1)
        for block in self.blocks:
            h = block(h, c)
        return self.outlet(h)


class Average:
    def __init__(self, model, decay=0.99):
        self.model, self.decay = model, decay
        self.slow = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.slow, list(self.model.parameters()), 1 - self.decay)

    @contextlib.contextmanager
    def swapped(self):
        kept = [p.data for p in self.model.parameters()]
        for p, s in zip(self.model.parameters(), self.slow):
            p.data = s
        yield self.model
        for p, k in zip(self.model.parameters(), kept):
            p.data = k


def levels(t):
    return torch.cos(t * math.pi / 2)[:, None], torch.sin(t * math.pi / 2)[:, None]


def loss_of(model, x0, kind):
    t = torch.rand(len(x0)) * 0.98 + 0.01
    a, s = levels(t)
    x, known = a * x0 + s * torch.randn_like(x0), torch.zeros_like(x0)
    if torch.rand(()) < 0.5:
        with torch.no_grad():
            known = model(x, t, kind, known)
    weight = (a / s).square().clamp(max=5.0)
    return (weight * (model(x, t, kind, known) - x0).square()).mean()


@torch.no_grad()
def sample(model, kind, steps=25):
    x, known = torch.randn(len(kind), 2), torch.zeros(len(kind), 2)
    times = torch.linspace(0.99, 0.01, steps + 1)
    for now, then in zip(times[:-1], times[1:]):
        a, s = levels(now.expand(len(kind)))
        known = model(x, now.expand(len(kind)), kind, known)
        b, r = levels(then.expand(len(kind)))
        x = b * known + r * (x - a * known) / s
    return known


model = Denoiser()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 1200)
average, kind = Average(model), torch.arange(400) % 2
wanted, miss = torch.tensor([0.6, 1.4])[kind], []
for step in range(1200):
    loss = loss_of(model, *make_rings(256))
    opt.zero_grad()
    loss.backward()
    opt.step()
    schedule.step()
    average.update()
    if step % 400 == 399:
        with average.swapped() as slow:
            miss.append((sample(slow, kind).norm(dim=1) - wanted).abs().mean().item())
print(f"last loss {loss.item():.4f}  mean radius miss of samples {[round(m, 3) for m in miss]}")
