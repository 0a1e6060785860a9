"""Energy model of two moons by sliced score matching: the score is the negative input gradient of a scalar energy."""
import copy
import math

import torch
from torch import nn

torch.manual_seed(23)

STEPS = 350
MICRO = 4
BATCH = 96
SIGMA = 0.2


def moons(n):
    angle = math.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos()) - 0.5
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin()) - 0.25
    return torch.stack([x, y], dim=1) * 1.5 + SIGMA * torch.randn(n, 2)


class Energy(nn.Module):
    """Scalar energy; only differences of energies mean anything."""

    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Softplus(beta=3), nn.Linear(width, width), nn.Softplus(beta=3),
                                  nn.Linear(width, 1))
        nn.init.zeros_(self.body[-1].bias)
        self.body[-1].bias.requires_grad_(False)

    def forward(self, x):
        return self.body(x).squeeze(1) + 0.05 * x.pow(2).sum(dim=1)


def score(energy, x, create_graph):
    (grad,) = torch.autograd.grad(energy(x).sum(), x, create_graph=create_graph)
    return -grad


def sliced_score_loss(energy, x):
    x = x.requires_grad_(True)
    s = score(energy, x, create_graph=True)
    v = torch.randn_like(x)
    (jv,) = torch.autograd.grad((s * v).sum(), x, create_graph=True)
    # variance-reduced form: the norm of the score is exact, the trace is estimated along v
    return ((jv * v).sum(dim=1) + 0.5 * s.pow(2).sum(dim=1)).mean()


def langevin(energy, n, steps=300, eps=0.003):
    x = torch.rand(n, 2) * 4 - 2
    for _ in range(steps):
        x = x.detach().requires_grad_(True)
        s = score(energy, x, create_graph=False).clamp(-30, 30)
        x = x + eps * s + math.sqrt(2 * eps) * torch.randn_like(x)
    return x.detach()


def distance(a, b):
    """Energy distance between two samples."""
    cross = torch.cdist(a, b).mean()
    return (2 * cross - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


class Average:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model)
        self.decay = decay
        self.count = 0

    @torch.no_grad()
    def update(self, model):
        self.count += 1
        decay = min(self.decay, self.count / (self.count + 10))
        for slow, fast in zip(self.model.parameters(), model.parameters()):
            slow.lerp_(fast, 1 - decay)


def main():
    energy = Energy()
    average = Average(energy, decay=0.98)
    optimizer = torch.optim.Adam([p for p in energy.parameters() if p.requires_grad], lr=5e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.1, total_iters=STEPS)
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(MICRO):
            loss = sliced_score_loss(energy, moons(BATCH)) / MICRO
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(energy.parameters(), 20.0)
        optimizer.step()
        scheduler.step()
        average.update(energy)
        if step % 70 == 0:
            print(f"step {step:4d}  sliced score loss {total:.3f}")
    samples, real, uniform = langevin(average.model, 1000), moons(1000), torch.rand(1000, 2) * 4 - 2
    print(f"energy distance to data: samples {distance(samples, real):.4f}, start {distance(uniform, real):.4f}, "
          f"data {distance(moons(1000), real):.4f}")


if __name__ == "__main__":
    main()
