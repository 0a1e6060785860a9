"""Self-adaptive physics-informed network (McClenny & Braga-Neto) for an advection-diffusion equation.

    u_t + c u_x = nu u_xx,   x in [0, 1] periodic,   u(x, 0) = sin(2 pi x)
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)

C, NU, T_END = 1.0, 0.02, 1.0
N_RES, N_INIT = 400, 60
STEPS = 500


def exact(x, t):
    k = 2 * math.pi
    return torch.exp(-NU * k * k * t) * torch.sin(k * (x - C * t))


class Field(nn.Module):
    """Periodicity in x is built into the input features."""

    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x, t):
        k = 2 * math.pi
        return self.net(torch.cat([torch.sin(k * x), torch.cos(k * x), 2 * t - 1], dim=1))


class PointWeights(nn.Module):
    """One positive weight for each collocation point and each initial point."""

    def __init__(self, n_res, n_init):
        super().__init__()
        self.res = nn.Parameter(torch.zeros(n_res, 1))
        self.init = nn.Parameter(torch.full((n_init, 1), 3.0))

    def forward(self):
        return F.softplus(self.res), F.softplus(self.init)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual(field, x, t):
    x = x.clone().requires_grad_(True)
    t = t.clone().requires_grad_(True)
    u = field(x, t)
    u_x = derivative(u, x)
    return derivative(u, t) + C * u_x - NU * derivative(u_x, x)


sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=1)
x_res, t_res = sobol.draw(N_RES).split(1, dim=1)
t_res = t_res * T_END
x_init = torch.linspace(0, 1, N_INIT + 1)[:-1].unsqueeze(1)
t_init = torch.zeros_like(x_init)
u_init = exact(x_init, t_init)

field = Field()
weights = PointWeights(N_RES, N_INIT)
optimizer = torch.optim.Adam([
    {"params": field.parameters(), "lr": 4e-3},
    {"params": weights.parameters(), "lr": 1e-2},
])
decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.997)

for step in range(STEPS):
    w_res, w_init = weights()
    res = residual(field, x_res, t_res)
    misfit = field(x_init, t_init) - u_init
    loss = (w_res * res ** 2).mean() + (w_init * misfit ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay.step()
    if (step + 1) % 100 == 0:
        print(f"step {step + 1:4d}  loss {loss.item():.5f}  residual {res.detach().pow(2).mean():.5f}  "
              f"initial {misfit.detach().pow(2).mean():.5f}")

with torch.no_grad():
    gx, gt = torch.meshgrid(torch.linspace(0, 1, 50), torch.linspace(0, T_END, 50), indexing="ij")
    gx, gt = gx.reshape(-1, 1), gt.reshape(-1, 1)
    error = field(gx, gt) - exact(gx, gt)
    rel_l2 = (error.norm() / exact(gx, gt).norm()).item()
print(f"relative L2 error {rel_l2:.4f}  largest error {error.abs().max():.4f}")
