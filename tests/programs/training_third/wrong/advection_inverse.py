import math

import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        dims = [2] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.readout = nn.Linear(width, 1)

    def forward(self, x, t):
        h = torch.cat([x, t], dim=1)
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return self.readout(h)


def partial(u, v):
    return torch.autograd.grad(u, v, torch.ones_like(u), retain_graph=True)[0]


class InverseProblem:
    def __init__(self, n_sensor=40, n_colloc=128, physics_weight=0.5):
        self.field = Field()
        self.speed = nn.Parameter(torch.tensor(0.2))
        self.physics_weight = physics_weight
        self.n_colloc = n_colloc
        x, t = torch.rand(n_sensor, 1), 0.4 * torch.rand(n_sensor, 1)
        self.sensors = (x, t, torch.sin(2 * math.pi * (x - 0.7 * t)))
        self.optimizer = torch.optim.Adam(
            [
                {"params": self.field.parameters(), "lr": 3e-3},
                {"params": [self.speed], "lr": 1e-2},
            ]
        )

    def residual(self):
        x = torch.rand(self.n_colloc, 1, requires_grad=True)
        t = torch.rand(self.n_colloc, 1, requires_grad=True)
        u = self.field(x, t)
        return partial(u, t) + self.speed * partial(u, x)

    def losses(self):
        x, t, observed = self.sensors
        data = (self.field(x, t) - observed).pow(2).mean()
        physics = self.residual().pow(2).mean()
        return data, physics

    def step(self):
        self.optimizer.zero_grad()
        data, physics = self.losses()
        total = data + self.physics_weight * physics
        total.backward()
        self.optimizer.step()
        return data.item(), physics.item()


def main(iterations=150):
    torch.manual_seed(0)
    problem = InverseProblem()
    for i in range(iterations):
        data, physics = problem.step()
        if i % 50 == 0:
            print(f"iter {i} data {data:.4f} physics {physics:.4f} speed {problem.speed.item():.3f}")
    return problem


if __name__ == "__main__":
    problem = main()
