"""Denoising diffusion on a planar spiral, with an exponential moving average of the weights for evaluation."""
import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn

LEVELS = 50
BATCH = 128
STEPS = 300
EVAL_EVERY = 20


def spiral(n):
    r = torch.rand(n).sqrt()
    angle = 3.0 * math.pi * r
    xy = torch.stack([r * torch.cos(angle), r * torch.sin(angle)], dim=1)
    return 2.0 * xy + 0.04 * torch.randn(n, 2)


def linear_schedule(levels):
    betas = torch.linspace(1e-3, 0.25, levels)
    return betas, torch.cumprod(1 - betas, dim=0)


class Denoiser(nn.Module):
    def __init__(self, width=96, features=16):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, features // 2)))
        self.inp = nn.Linear(2 + features, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        phase = (t.float() / LEVELS)[:, None] * self.freqs
        h = torch.cat([x, phase.sin(), phase.cos()], dim=1)
        h = F.silu(self.inp(h))
        h = h + F.silu(self.mid(h))
        return self.out(h)


class WeightAverage:
    """Shadow copy of the parameters: shadow <- decay * shadow + (1 - decay) * current."""

    def __init__(self, parameters, decay):
        self.parameters = list(parameters)
        self.decay = decay
        self.shadow = [p.detach().clone() for p in self.parameters]
        self.stored = None

    @torch.no_grad()
    def update(self):
        for s, p in zip(self.shadow, self.parameters):
            s.lerp_(p, 1 - self.decay)

    def store(self):
        self.stored = [p.detach() for p in self.parameters]

    @torch.no_grad()
    def copy_to(self):
        for s, p in zip(self.shadow, self.parameters):
            p.copy_(s)

    @torch.no_grad()
    def restore(self):
        for c, p in zip(self.stored, self.parameters):
            p.copy_(c)
        self.stored = None

    @contextlib.contextmanager
    def averaged(self):
        self.store()
        self.copy_to()
        try:
            yield
        finally:
            self.restore()


def noise_loss(model, x0, t, noise, alpha_bar):
    a = alpha_bar[t][:, None]
    return F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)


@torch.no_grad()
def draw(model, n, betas, alpha_bar):
    x = torch.randn(n, 2)
    for level in reversed(range(LEVELS)):
        t = torch.full((n,), level)
        eps = model(x, t)
        x = (x - betas[level] / (1 - alpha_bar[level]).sqrt() * eps) / (1 - betas[level]).sqrt()
        if level > 0:
            x = x + betas[level].sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(3)
betas, alpha_bar = linear_schedule(LEVELS)
data, valid = spiral(4096), spiral(1024)
valid_t, valid_noise = torch.randint(LEVELS, (1024,)), torch.randn(1024, 2)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
average = WeightAverage(model.parameters(), decay=0.995)

history = []
for step in range(1, STEPS + 1):
    x0 = data[torch.randint(len(data), (BATCH,))]
    loss = noise_loss(model, x0, torch.randint(LEVELS, (BATCH,)), torch.randn_like(x0), alpha_bar)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update()
    if step % EVAL_EVERY == 0:
        with average.averaged(), torch.no_grad():
            history.append(noise_loss(model, valid, valid_t, valid_noise, alpha_bar).item())
        if step % 100 == 0:
            print(f"step {step:4d}  train {loss.item():.4f}  validation (averaged weights) {history[-1]:.4f}")

with average.averaged():
    samples = draw(model, 500, betas, alpha_bar)
nearest = torch.cdist(samples, data).min(dim=1).values.mean().item()
print(f"best validation {min(history):.4f}")
print(f"mean distance of a sample to the data {nearest:.4f}")
