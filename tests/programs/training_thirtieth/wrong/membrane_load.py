"""Deflection of a clamped square membrane under a localised load.

A small network is trained on the strong form of the equilibrium equation
    T * laplace(u) + q(x, y) = 0   on (0, 1)^2,   u = 0 on the edge,
with the edge condition built into the ansatz.
"""
import math

import torch
from torch import nn

torch.manual_seed(11)

TENSION = 1.0
STEPS = 150
POINTS = 169


class Membrane(nn.Module):
    """u(x, y) = x (1 - x) y (1 - y) * net(x, y), which vanishes on the edge."""

    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, xy):
        x, y = xy[:, 0:1], xy[:, 1:2]
        edge = x * (1 - x) * y * (1 - y)
        return 16.0 * edge * self.net(2 * xy - 1)


def load(xy, center=(0.35, 0.6), width=0.2, peak=10.0):
    """A Gaussian patch of pressure."""
    c = torch.tensor(center)
    r2 = ((xy - c) ** 2).sum(dim=1, keepdim=True)
    return peak * torch.exp(-r2 / (2 * width ** 2))


def laplacian(u, xy):
    """Second derivatives of u at the points xy, added up over the coordinates."""
    du = torch.autograd.grad(u.sum(), xy, create_graph=True)[0]
    d2u = torch.autograd.grad(du.sum(), xy, create_graph=True)[0]
    return d2u.sum(dim=1, keepdim=True)


def residual(model, xy):
    xy = xy.clone().requires_grad_(True)
    u = model(xy)
    return TENSION * laplacian(u, xy) + load(xy)


def sample(n, generator):
    """Jittered grid: one point in each cell of a square lattice."""
    k = int(math.sqrt(n))
    ticks = torch.arange(k, dtype=torch.float32)
    cell = torch.stack(torch.meshgrid(ticks, ticks, indexing="ij"), dim=-1).reshape(-1, 2)
    return (cell + torch.rand(k * k, 2, generator=generator)) / k


def train(model):
    generator = torch.Generator().manual_seed(5)
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=2e-4)
    history = []
    for step in range(STEPS):
        xy = sample(POINTS, generator)
        loss = residual(model, xy).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        history.append(loss.item())
        if step % 40 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  residual {loss.item():9.4f}")
    return history


def report(model):
    probe = torch.tensor([[0.5, 0.5], [0.35, 0.6], [0.65, 0.4], [0.25, 0.25], [0.75, 0.75]])
    with torch.no_grad():
        values = model(probe).squeeze(1)
    for (x, y), u in zip(probe.tolist(), values.tolist()):
        print(f"u({x:.2f}, {y:.2f}) = {u:.4f}")
    ticks = torch.linspace(0, 1, 41)
    grid = torch.stack(torch.meshgrid(ticks, ticks, indexing="ij"), dim=-1).reshape(-1, 2)
    with torch.no_grad():
        field = model(grid).reshape(41, 41)
    print(f"largest deflection {field.max().item():.4f}, mean {field.mean().item():.4f}")
    return field


if __name__ == "__main__":
    membrane = Membrane()
    losses = train(membrane)
    deflection = report(membrane)
