"""Self-adaptive physics-informed network for a viscous boundary layer.

Solves  -nu u'' + u' = 1  on (0, 1) with u(0) = u(1) = 0.  Each collocation point carries a weight that
grows where the residual is persistently large, and the boundary conditions enter through an augmented
Lagrangian, so the whole is a saddle-point problem: network down, weights and multipliers up.
"""
import math

import torch
from torch import nn

torch.manual_seed(4)
torch.set_default_dtype(torch.float64)
NU, POINTS, STEPS = 0.08, 96, 900


def exact(x):
    return x - (torch.exp((x - 1) / NU) - math.exp(-1 / NU)) / (1 - math.exp(-1 / NU))


class Layer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.register_buffer("centre", torch.tensor(0.5))

    def forward(self, x):
        return self.net(4.0 * (x - self.centre))


class PointWeights(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(n, 1))
        self.raw.register_hook(torch.neg)

    def forward(self):
        w = 1.0 + nn.functional.softplus(self.raw)
        return w / w.detach().mean()


class Multiplier:
    """Augmented-Lagrangian term for an equality constraint; the multiplier follows the violation."""

    def __init__(self, size, penalty=10.0):
        self.value = torch.zeros(size)
        self.penalty = penalty

    def term(self, violation):
        return (self.value * violation).sum() + 0.5 * self.penalty * violation.pow(2).sum()

    def update(self, violation, rate):
        self.value = (self.value + rate * self.penalty * violation.detach()).clamp(-20, 20)


def residual(model, x):
    u = model(x)
    (u_x,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return -NU * u_xx + u_x - 1.0


def main():
    x = torch.linspace(0, 1, POINTS).unsqueeze(1).requires_grad_(True)
    ends = torch.tensor([[0.0], [1.0]])
    model, weights = Layer(), PointWeights(POINTS)
    multiplier = Multiplier(2)

    down = torch.optim.Adam(model.parameters(), lr=4e-3)
    up = torch.optim.SGD(weights.parameters(), lr=5.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(down, 0.998)

    for step in range(STEPS):
        r = residual(model, x)
        violation = model(ends).squeeze(1)
        loss = (weights() * r.pow(2)).mean() + multiplier.term(violation)
        down.zero_grad()
        up.zero_grad()
        loss.backward(inputs=[*model.parameters(), *weights.parameters()])
        down.step()
        up.step()
        if step % 10 == 9:
            multiplier.update(violation, rate=0.1)
        scheduler.step()
        if (step + 1) % 300 == 0:
            print(f"step {step + 1:4d}  residual {r.pow(2).mean().item():.5f}  "
                  f"boundary {violation.abs().max().item():.5f}  largest weight {weights().max().item():.2f}")

    with torch.no_grad():
        grid = torch.linspace(0, 1, 400).unsqueeze(1)
        error = (model(grid) - exact(grid)).norm() / exact(grid).norm()
        w = weights().squeeze(1)
    print(f"relative error {error.item():.5f}")
    print(f"mean weight left half {w[:POINTS // 2].mean().item():.3f}  right half {w[POINTS // 2:].mean().item():.3f}")
    return error.item(), weights


if __name__ == "__main__":
    error, weights = main()
