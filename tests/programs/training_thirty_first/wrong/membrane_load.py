"""Deflection of a square membrane under a distributed load, with a physics-informed network.

The membrane is clamped along the edge of the unit square.  Its deflection w obeys

    w_xx + w_yy = -q(x, y)

and for q = 2 pi^2 sin(pi x) sin(pi y) the closed solution is w = sin(pi x) sin(pi y),
which the script compares with at the end.
"""
import math

import torch
from torch import nn

STEPS = 190
INTERIOR = 96
EDGE = 48
EDGE_WEIGHT = 30.0


class Membrane(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, xy):
        return self.net(2.0 * xy - 1.0)


def load(xy):
    return 2 * math.pi ** 2 * torch.sin(math.pi * xy[:, :1]) * torch.sin(math.pi * xy[:, 1:])


def closed_solution(xy):
    return torch.sin(math.pi * xy[:, :1]) * torch.sin(math.pi * xy[:, 1:])


def laplacian(w, xy):
    slope = torch.autograd.grad(w.sum(), xy, create_graph=True)[0]
    total = torch.zeros_like(w)
    for k in range(xy.shape[1]):
        second = torch.autograd.grad(slope[:, k].sum(), xy, retain_graph=True)[0]
        total = total + second[:, k:k + 1]
    return total


def sample_interior(n):
    return torch.rand(n, 2).requires_grad_(True)


def sample_edge(n):
    points = torch.rand(n, 2)
    side = torch.randint(0, 4, (n,))
    points[side == 0, 0] = 0.0
    points[side == 1, 0] = 1.0
    points[side == 2, 1] = 0.0
    points[side == 3, 1] = 1.0
    return points


def residual_loss(model):
    xy = sample_interior(INTERIOR)
    w = model(xy)
    residual = laplacian(w, xy) + load(xy)
    return residual.pow(2).mean()


def edge_loss(model):
    return model(sample_edge(EDGE)).pow(2).mean()


def relative_error(model, n=21):
    axis = torch.linspace(0, 1, n)
    xy = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        exact = closed_solution(xy)
        return ((model(xy) - exact).norm() / exact.norm()).item()


def main():
    torch.manual_seed(11)
    model = Membrane()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=1e-3)
    history = []
    for step in range(STEPS):
        optimizer.zero_grad()
        physics = residual_loss(model)
        clamped = edge_loss(model)
        loss = physics + EDGE_WEIGHT * clamped
        loss.backward()
        optimizer.step()
        scheduler.step()
        history.append((physics.item(), clamped.item()))
        if step % 38 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  residual {physics.item():9.4f}  edge {clamped.item():.5f}")
    print(f"relative error against the closed solution: {relative_error(model):.3f}")
    return model, history


if __name__ == "__main__":
    model, history = main()
