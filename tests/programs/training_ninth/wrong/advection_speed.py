"""Recover the transport speed of a pollutant plume from sparse, noisy sensor readings."""
import math

import torch
from torch import nn

TRUE_SPEED = 0.8
STEPS = 500


def plume(t, x):
    s = x - TRUE_SPEED * t
    return torch.exp(-8.0 * (s - 0.2) ** 2) + 0.3 * torch.sin(math.pi * s)


class Field(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        layers, n = [], 2
        for _ in range(depth):
            layers += [nn.Linear(n, width), nn.Tanh()]
            n = width
        self.net = nn.Sequential(*layers, nn.Linear(n, 1))
        self.speed = nn.Parameter(torch.tensor(0.1))

    def forward(self, t, x):
        return self.net(torch.cat([t, x], dim=1))


def derivatives(u, t, x):
    ones = torch.ones_like(u)
    u_t, u_x = torch.autograd.grad(u, (t, x), grad_outputs=ones, retain_graph=True)
    return u_t, u_x


def transport_residual(field, t, x):
    u = field(t, x)
    u_t, u_x = derivatives(u, t, x)
    return u_t + field.speed * u_x


def collocation(n, gen):
    t = torch.rand(n, 1, generator=gen)
    x = torch.rand(n, 1, generator=gen) * 2 - 1
    return t.requires_grad_(), x.requires_grad_()


def sensors(gen):
    t = torch.rand(24, 1, generator=gen)
    x = torch.rand(24, 1, generator=gen) * 2 - 1
    y = plume(t, x) + 0.05 * torch.randn(24, 1, generator=gen)
    return t, x, y


def held_out_error(field, gen):
    t = torch.rand(500, 1, generator=gen)
    x = torch.rand(500, 1, generator=gen) * 2 - 1
    with torch.no_grad():
        return ((field(t, x) - plume(t, x)) ** 2).mean().sqrt().item()


def main():
    torch.manual_seed(7)
    gen = torch.Generator().manual_seed(7)
    field = Field()
    optimizer = torch.optim.Adam(
        [
            {"params": field.net.parameters(), "lr": 4e-3},
            {"params": [field.speed], "lr": 1e-2},
        ]
    )
    ts, xs, ys = sensors(gen)
    history = []
    for step in range(STEPS):
        t, x = collocation(128, gen)
        residual = transport_residual(field, t, x)
        physics = (residual ** 2).mean()
        data = ((field(ts, xs) - ys) ** 2).mean()
        loss = data + 0.1 * physics

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        history.append((data.item(), physics.item()))
        if step % 100 == 0:
            print(f"{step:4d}  data {data.item():.4f}  physics {physics.item():.4f}  speed {field.speed.item():.3f}")
    return field, history, held_out_error(field, gen)


if __name__ == "__main__":
    field, history, rmse = main()
    print(f"speed {field.speed.item():.3f}  physics {history[-1][1]:.4f}  held-out rmse {rmse:.4f}")
