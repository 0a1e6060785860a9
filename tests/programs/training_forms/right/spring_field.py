from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call, jvp

torch.manual_seed(3)
OMEGA, DAMP = 2.0, 0.3


@dataclass
class Terms:
    data: torch.Tensor
    start: torch.Tensor
    residual: torch.Tensor


class Curve(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inner = nn.Linear(1, width)
        self.outer = nn.Linear(width, 1)

    def forward(self, t):
        return self.outer(torch.sin(2 * self.inner(t)))


def exact(t):
    w = (OMEGA**2 - DAMP**2) ** 0.5
    return torch.exp(-DAMP * t) * torch.cos(w * t)


def derivatives(net, t):
    weights = dict(net.named_parameters())
    one = torch.ones_like(t)

    def value(s):
        return functional_call(net, weights, (s,))

    def slope(s):
        return jvp(value, (s,), (one,))[1]

    return (value(t), *jvp(slope, (t,), (one,)))


class Solver:
    def __init__(self):
        self.net = Curve()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.t_obs = torch.rand(20, 1) * 1.5
        self.y_obs = exact(self.t_obs) + 0.02 * torch.randn(20, 1)

    def terms(self):
        x, dx, ddx = derivatives(self.net, torch.rand(40, 1) * 4)
        ode = ddx + 2 * DAMP * dx + OMEGA**2 * x
        return Terms(
            data=(self.net(self.t_obs) - self.y_obs).square().mean(),
            start=(self.net(torch.zeros(1, 1)) - 1).square().mean(),
            residual=ode.square().mean(),
        )

    def fit(self, steps=120):
        for k in range(steps):
            t = self.terms()
            total = t.data + 0.5 * t.start + 0.1 * t.residual
            self.opt.zero_grad()
            total.backward()
            self.opt.step()
            if k % 40 == 39:
                print(f"step {k + 1}: total {total.item():.5f}")


solver = Solver()
solver.fit()
with torch.no_grad():
    grid = torch.linspace(0, 4, 50)[:, None]
    print(f"rmse on grid {(solver.net(grid) - exact(grid)).square().mean().sqrt():.4f}")
