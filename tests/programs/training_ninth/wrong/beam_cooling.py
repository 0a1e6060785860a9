"""Cooling of a heated rod: a network for the temperature with balanced terms for the equation, the start and the ends."""
import math

import torch
import torch.nn.functional as F
from torch import nn

DIFFUSIVITY = 0.08


def exact(t, x):
    fast = torch.exp(-DIFFUSIVITY * (3 * math.pi) ** 2 * t) * torch.sin(3 * math.pi * x)
    slow = torch.exp(-DIFFUSIVITY * math.pi ** 2 * t) * torch.sin(math.pi * x)
    return slow + 0.5 * fast


class Rod(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        dims = [2] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, t, x):
        h = torch.cat([t, 2 * x - 1], dim=1)
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return self.out(h)


class Balance(nn.Module):
    """One trainable weight per term, kept positive."""

    def __init__(self, names, start=1.0):
        super().__init__()
        raw = math.log(math.expm1(start))
        self.raw = nn.ParameterDict({n: nn.Parameter(torch.tensor(raw)) for n in names})

    def weight(self, name):
        return F.softplus(self.raw[name])

    def forward(self, terms):
        return sum(self.weight(n) * value for n, value in terms.items())


def gradient(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def equation(rod, n, gen):
    t = torch.rand(n, 1, generator=gen).requires_grad_()
    x = torch.rand(n, 1, generator=gen).requires_grad_()
    u = rod(t, x)
    u_xx = gradient(gradient(u, x), x)
    return (gradient(u, t) - DIFFUSIVITY * u_xx).pow(2).mean()


def start(rod, n, gen):
    x = torch.rand(n, 1, generator=gen)
    t = torch.zeros_like(x)
    return (rod(t, x) - exact(t, x)).pow(2).mean()


def ends(rod, n, gen):
    t = torch.rand(n, 1, generator=gen)
    x = (torch.rand(n, 1, generator=gen) < 0.5).float()
    return rod(t, x).pow(2).mean()


def test_error(rod):
    grid = torch.linspace(0, 1, 41)
    t, x = (g.reshape(-1, 1) for g in torch.meshgrid(grid, grid, indexing="ij"))
    with torch.no_grad():
        return ((rod(t, x) - exact(t, x)).norm() / exact(t, x).norm()).item()


def main(steps=600):
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(31)
    rod, balance = Rod(), Balance(["equation", "start", "ends"])
    net_opt = torch.optim.Adam(rod.parameters(), lr=3e-3)
    balance_opt = torch.optim.Adam(balance.parameters(), lr=2e-2)
    history = []
    for step in range(steps):
        terms = {
            "equation": equation(rod, 96, gen),
            "start": start(rod, 48, gen),
            "ends": ends(rod, 32, gen),
        }
        loss = balance(terms)
        net_opt.zero_grad()
        balance_opt.zero_grad()
        loss.backward()
        net_opt.step()
        balance_opt.step()
        history.append((loss.item(), *(v.item() for v in terms.values())))
        if step % 120 == 0:
            print(f"{step:4d}  loss {loss.item():.5f}  " + "  ".join(f"{n} {v.item():.4f}" for n, v in terms.items()))
    return rod, balance, history


if __name__ == "__main__":
    rod, balance, history = main()
    weights = {n: round(balance.weight(n).item(), 4) for n in balance.raw}
    error = test_error(rod)
    print(f"loss {history[-1][0]:.6f}  relative error {error:.4f}  weights {weights}")
