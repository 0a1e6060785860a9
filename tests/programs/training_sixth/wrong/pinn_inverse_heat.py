"""Inverse physics-informed network: recover the diffusivity of the heat equation from noisy observations."""
import math

import torch
import torch.nn as nn


TRUE_NU = 0.15


def exact(x, t):
    return torch.exp(-TRUE_NU * math.pi ** 2 * t) * torch.sin(math.pi * x)


class HeatPINN(nn.Module):
    def __init__(self, width=24, depth=3, nu_init=0.5):
        super().__init__()
        layers, d = [], 2
        for _ in range(depth):
            layers += [nn.Linear(d, width), nn.Tanh()]
            d = width
        self.net = nn.Sequential(*layers, nn.Linear(d, 1))
        self.log_nu = nn.Parameter(torch.tensor(math.log(nu_init)))

    @property
    def nu(self):
        return self.log_nu.exp().item()

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))

    def residual(self, x, t):
        x = x.requires_grad_(True)
        t = t.requires_grad_(True)
        u = self(x, t)
        ones = torch.ones_like(u)
        u_t = torch.autograd.grad(u, t, ones, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, ones, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, ones, create_graph=True)[0]
        return u_t - self.nu * u_xx


def observations(n, noise=0.01):
    x, t = torch.rand(n, 1), torch.rand(n, 1)
    return x, t, exact(x, t) + noise * torch.randn(n, 1)


def boundary(model, n):
    t = torch.rand(n, 1)
    left = model(torch.zeros(n, 1), t)
    right = model(torch.ones(n, 1), t)
    return (left ** 2).mean() + (right ** 2).mean()


def train(model, steps=600, lr=5e-3):
    x_obs, t_obs, u_obs = observations(200)
    optimizer = torch.optim.Adam([
        {"params": model.net.parameters(), "lr": lr},
        {"params": [model.log_nu], "lr": 4 * lr},
    ])
    for step in range(steps):
        x, t = torch.rand(64, 1), torch.rand(64, 1)
        data_loss = ((model(x_obs, t_obs) - u_obs) ** 2).mean()
        pde_loss = (model.residual(x, t) ** 2).mean()
        bc_loss = boundary(model, 32)
        loss = data_loss + 0.1 * pde_loss + bc_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 0:
            print(f"step {step} data {data_loss:.5f} pde {pde_loss:.5f} nu {model.nu:.4f}")
    return optimizer


if __name__ == "__main__":
    torch.manual_seed(9)
    model = HeatPINN()
    optimizer = train(model)
    print(f"estimated nu {model.nu:.4f}, true nu {TRUE_NU}")
