"""Energy-based model on one-dimensional signals with persistent chains. While the chains move, the weights take no
gradient; afterwards they are switched on again and only the contrastive loss reaches them."""
import math
from contextlib import contextmanager

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

LENGTH = 8


def signals(n):
    t = torch.arange(LENGTH) / LENGTH
    sign = torch.where(torch.rand(n, 1) < 0.5, -1.0, 1.0)
    return sign * torch.sin(2 * math.pi * t) + 0.15 * torch.randn(n, LENGTH)


@contextmanager
def frozen(module):
    for p in module.parameters():
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in module.parameters():
            p.requires_grad_(True)


energy = nn.Sequential(nn.Linear(LENGTH, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3, betas=(0.5, 0.999))
chains = torch.randn(256, LENGTH)


def advance(x, steps=12, size=0.08, noise=0.05):
    x = x.clone().requires_grad_(True)
    with frozen(energy):
        for _ in range(steps):
            slope = torch.autograd.grad(energy(x).sum(), x)[0]
            x = (x - size * slope + noise * torch.randn_like(x)).detach().requires_grad_(True)
    return x.detach()


for i in range(240):
    index = torch.randperm(len(chains))[:64]
    start = chains[index]
    reset = torch.rand(64) < 0.1
    start[reset] = torch.randn(int(reset.sum()), LENGTH)
    fake = advance(start)
    chains[index] = fake

    e_real, e_fake = energy(signals(64)), energy(fake)
    loss = e_real.mean() - e_fake.mean() + 0.1 * (e_real.pow(2).mean() + e_fake.pow(2).mean())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(energy.parameters(), 1.0)
    optimizer.step()
    if i % 60 == 0:
        print(f"iteration {i}  data {e_real.mean().item():+.3f}  chains {e_fake.mean().item():+.3f}")

with torch.no_grad():
    real = energy(signals(1000)).squeeze(1)
    noise = energy(0.7 * torch.randn(1000, LENGTH)).squeeze(1)
print(f"signals told from noise by energy: auc {(real[:, None] < noise[None]).float().mean().item():.3f}")
