import math
from typing import NamedTuple

import torch
import torch.nn as nn
from torch.autograd import grad


class Points(NamedTuple):
    coords: torch.Tensor

    @property
    def x(self):
        return self.coords[:, 0:1]

    @property
    def t(self):
        return self.coords[:, 1:2]


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 2.0]))
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, coords):
        return self.layers(coords * self.scale - 1.0)


def d(u, v):
    return grad(u, v, grad_outputs=torch.ones_like(u), create_graph=True)[0]


class WaveEquation:
    def __init__(self, speed=1.0):
        self.speed = speed

    def sample(self, n):
        return Points(torch.rand(n, 2).requires_grad_(True))

    def residual(self, net, pts):
        x, t = pts.x, pts.t
        u = net(pts.coords)
        u_xx = d(d(u, x), x)
        u_tt = d(d(u, t), t)
        return u_tt - self.speed ** 2 * u_xx

    def initial(self, net, n):
        x = torch.rand(n, 1)
        t = torch.zeros(n, 1, requires_grad=True)
        u = net(torch.cat([x, t], dim=1))
        return (u - torch.sin(math.pi * x)).pow(2).mean() + d(u, t).pow(2).mean()

    def boundary(self, net, n):
        t = torch.rand(n, 1)
        left = net(torch.cat([torch.zeros_like(t), t], dim=1))
        right = net(torch.cat([torch.ones_like(t), t], dim=1))
        return left.pow(2).mean() + right.pow(2).mean()


def train(steps=50):
    net, eq = Net(), WaveEquation()
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for step in range(steps):
        pde = eq.residual(net, eq.sample(128)).pow(2).mean()
        ic, bc = eq.initial(net, 64), eq.boundary(net, 64)
        loss = 0.1 * pde + ic + bc
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step:2d} pde {pde.item():.4f} ic {ic.item():.4f} bc {bc.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(17)
    train()
