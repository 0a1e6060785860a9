"""Energy-based density of two moons, fitted by denoising score matching over a ladder of noise levels."""
import math

import torch
import torch.nn as nn

torch.manual_seed(8)
STEPS, BATCH = 700, 192
SIGMAS = torch.logspace(math.log10(0.1), math.log10(0.9), 7).flip(0)


def moons(n):
    angle = math.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, torch.cos(angle), 1 - torch.cos(angle)) - 0.5
    y = torch.where(upper, torch.sin(angle), 0.5 - torch.sin(angle)) - 0.25
    return torch.stack([x, y], dim=1) + 0.03 * torch.randn(n, 2)


class Energy(nn.Module):
    """Scalar energy E(x, sigma); the model's score is -dE/dx. The constant of E is arbitrary."""

    def __init__(self, hidden=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, x, sigma):
        return self.net(torch.cat([x, sigma.log()], dim=1)).squeeze(-1) / sigma.squeeze(-1)

    def score(self, x, sigma, create_graph):
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            return -torch.autograd.grad(self(x, sigma).sum(), x, create_graph=create_graph)[0]


def average_in(slow, fast, count):
    """Running mean of the weights over the last part of training."""
    with torch.no_grad():
        for s, f in zip(slow.parameters(), fast.parameters()):
            s.lerp_(f, 1.0 / count)


@torch.no_grad()
def anneal(energy, n, inner=12):
    x = 1.5 * torch.randn(n, 2)
    for sigma in SIGMAS:
        size = 0.15 * sigma ** 2
        level = sigma.expand(n, 1)
        for _ in range(inner):
            x = x + size * energy.score(x, level, create_graph=False) + (2 * size).sqrt() * torch.randn_like(x)
    return x + sigma ** 2 * energy.score(x, level, create_graph=False)


energy = Energy()
averaged = Energy()
averaged.load_state_dict(energy.state_dict())
averaged.requires_grad_(False)
optimizer = torch.optim.Adam(energy.parameters(), lr=6e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=3e-4)

for step in range(STEPS):
    clean = moons(BATCH)
    sigma = SIGMAS[torch.randint(0, len(SIGMAS), (BATCH, 1))]
    noise = torch.randn_like(clean)
    # the loss is on dE/dx, so the graph of the inner gradient is kept and differentiated again
    score = energy.score(clean + sigma * noise, sigma, create_graph=True)
    loss = (sigma * score + noise).pow(2).sum(dim=1).mean()

    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(energy.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step >= STEPS // 2:
        average_in(averaged, energy, step - STEPS // 2 + 1)
    if (step + 1) % 100 == 0:
        print(f"step {step + 1}: score loss {loss.item():.3f}")

samples, held_out = anneal(averaged, 800), moons(800)
distance = torch.cdist(samples, held_out)
near = (distance.min(dim=1).values < 0.15).float().mean().item()
covered = (distance.min(dim=0).values < 0.15).float().mean().item()
print(f"samples on the moons {near:.3f}  moons covered {covered:.3f}")
