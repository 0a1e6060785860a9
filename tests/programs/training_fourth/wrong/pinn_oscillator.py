"""A physics-informed network for the damped oscillator u'' + 2 d u' + w^2 u = 0, u(0) = 1, u'(0) = 0."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


@dataclass
class Physics:
    damping: float = 0.4
    omega: float = 2.0
    t_end: float = 3.0

    def exact(self, t):
        w = math.sqrt(self.omega ** 2 - self.damping ** 2)
        return torch.exp(-self.damping * t) * (torch.cos(w * t) + self.damping / w * torch.sin(w * t))


class Solution(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, t):
        # hard initial conditions: u(0) = 1, u'(0) = 0
        return 1 + t ** 2 / (1 + t ** 2) * self.net(t)


def derivatives(model, t):
    t = t.clone().requires_grad_(True)
    u = model(t)
    u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    u_tt = torch.autograd.grad(u_t.sum(), t, retain_graph=True)[0]
    return u, u_t, u_tt


def residual_loss(model, physics, t):
    u, u_t, u_tt = derivatives(model, t)
    residual = u_tt + 2 * physics.damping * u_t + physics.omega ** 2 * u
    return residual.pow(2).mean()


def solve(physics, steps=700):
    model = Solution()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.997)
    grid = torch.linspace(0, physics.t_end, 60)[:, None]
    for step in range(steps):
        t = grid + 0.02 * torch.rand_like(grid)
        loss = residual_loss(model, physics, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print(f"step {step:4d} residual {loss.item():.4f}")
    return model


def evaluate(model, physics):
    t = torch.linspace(0, physics.t_end, 200)[:, None]
    with torch.no_grad():
        u = model(t)
    exact = physics.exact(t)
    return ((u - exact).norm() / exact.norm()).item()


if __name__ == "__main__":
    physics = Physics()
    model = solve(physics)
    error = evaluate(model, physics)
    print(f"relative error of the solution {error:.4f}")
