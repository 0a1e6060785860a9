import math

import torch
from torch import nn

torch.manual_seed(83)


class Heat(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_nu = nn.Parameter(torch.tensor(-1.0))
        self.field = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    @property
    def nu(self):
        return math.exp(self.log_nu)

    def forward(self, x, t):
        return self.field(torch.cat([x, t], dim=1))

    def residual(self, x, t):
        x, t = x.requires_grad_(), t.requires_grad_()
        u = self(x, t)
        slope = lambda y, z: torch.autograd.grad(y.sum(), z, create_graph=True)[0]
        return slope(u, t) - self.nu * slope(slope(u, x), x)


def truth(x, t, nu=0.1):
    return torch.exp(-nu * math.pi ** 2 * t) * torch.sin(math.pi * x)


heat = Heat()
opt = torch.optim.Adam(heat.parameters(), lr=1e-2)
sensors = torch.rand(120, 1), torch.rand(120, 1)
measured = truth(*sensors) + 0.01 * torch.randn(120, 1)
for it in range(300):
    data = (heat(*sensors) - measured).square().mean()
    physics = heat.residual(torch.rand(60, 1), torch.rand(60, 1)).square().mean()
    loss = data + 0.05 * physics
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 100 == 99:
        print(f"{it + 1}: data {data.item():.5f} physics {physics.item():.5f} nu {heat.log_nu.exp().item():.4f}")
