"""Inverse problem for a damped oscillator: a physics-informed network recovers damping and stiffness.

A few noisy displacement readings are taken on the first part of the record only; the rest of the
interval is covered by the equation of motion  u'' + c u' + k u = 0.
"""
import math

import torch
from torch import nn

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)

C_TRUE, K_TRUE = 0.6, 4.0
T_END, T_OBS = 4.0, 2.6
STEPS = 1500


def displacement(t):
    omega = math.sqrt(K_TRUE - 0.25 * C_TRUE ** 2)
    return torch.exp(-0.5 * C_TRUE * t) * torch.cos(omega * t)


class Field(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        layers, size = [], 1
        for _ in range(depth):
            layers += [nn.Linear(size, width), nn.Tanh()]
            size = width
        self.body = nn.Sequential(*layers, nn.Linear(size, 1))

    def forward(self, t):
        return self.body(2.0 * t / T_END - 1.0)


class Oscillator(nn.Module):
    """The unknown constants; kept positive by a softplus."""

    def __init__(self):
        super().__init__()
        self.raw_c = nn.Parameter(torch.tensor(0.0))
        self.raw_k = nn.Parameter(torch.tensor(2.0))

    @property
    def c(self):
        return nn.functional.softplus(self.raw_c)

    @property
    def k(self):
        return nn.functional.softplus(self.raw_k)


def derivatives(field, t):
    u = field(t)
    ones = torch.ones_like(u)
    u_t = torch.autograd.grad(u, t, ones, create_graph=True)[0]
    u_tt = torch.autograd.grad(u_t, t, ones, retain_graph=True)[0]
    return u, u_t, u_tt


def residual(field, system, t):
    u, u_t, u_tt = derivatives(field, t)
    return u_tt + system.c * u_t + system.k * u


def main():
    t_obs = torch.linspace(0.0, T_OBS, 30).unsqueeze(1)
    u_obs = displacement(t_obs) + 0.01 * torch.randn_like(t_obs)
    t_test = torch.linspace(T_OBS, T_END, 80).unsqueeze(1)

    field, system = Field(), Oscillator()
    optimizer = torch.optim.Adam([
        {"params": field.parameters(), "lr": 5e-3},
        {"params": system.parameters(), "lr": 1e-2},
    ])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=1e-4)

    for step in range(STEPS):
        t_col = (T_END * torch.rand(64, 1)).requires_grad_(True)
        data_loss = (field(t_obs) - u_obs).pow(2).mean()
        physics_loss = residual(field, system, t_col).pow(2).mean()
        loss = 20.0 * data_loss + 1.0 * physics_loss

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()

        if (step + 1) % 500 == 0:
            print(f"step {step + 1:5d}  data {data_loss.item():.5f}  physics {physics_loss.item():.5f}  "
                  f"c {system.c.item():.3f}  k {system.k.item():.3f}")

    with torch.no_grad():
        error = (field(t_test) - displacement(t_test)).pow(2).mean().sqrt().item()
    print(f"extrapolation rmse {error:.4f}")
    print(f"damping {system.c.item():.3f} (true {C_TRUE})  stiffness {system.k.item():.3f} (true {K_TRUE})")
    return error, system.c.item(), system.k.item()


if __name__ == "__main__":
    scores = main()
