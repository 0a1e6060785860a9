"""Cooling of a glowing rod, u_t = k u_xx, by a PINN with self-adaptive weights on the collocation points."""
import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--diffusivity", type=float, default=0.05)
parser.add_argument("--points", type=int, default=256)
parser.add_argument("--boundary", type=int, default=64)
parser.add_argument("--steps", type=int, default=750)
parser.add_argument("--lr", type=float, default=5e-3)
parser.add_argument("--weight-lr", type=float, default=5e-2)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args([])


class Rod(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        return self.net(torch.cat([2 * x - 1, t - 1], dim=-1))


class PointWeights(nn.Module):
    """One positive weight per collocation / initial / wall point; the hard points become heavy."""

    def __init__(self, **sizes):
        super().__init__()
        self.raw = nn.ParameterDict({k: nn.Parameter(torch.zeros(n, 1)) for k, n in sizes.items()})

    def forward(self, residuals):
        total = 0.0
        for name, r in residuals.items():
            total = total + (2 * torch.sigmoid(self.raw[name]) * r ** 2).mean()
        return total


def exact(x, t, k):
    return (torch.sin(math.pi * x) * torch.exp(-k * math.pi ** 2 * t)
            + 0.5 * torch.sin(3 * math.pi * x) * torch.exp(-9 * k * math.pi ** 2 * t))


def d(u, x):
    # rows are independent, so the gradient of the sum holds every row's derivative
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def sample(n, m, g):
    x = torch.rand(n, 1, generator=g)
    t = 2 * torch.rand(n, 1, generator=g) ** 2
    x0 = torch.rand(m, 1, generator=g)
    xw = (torch.rand(m, 1, generator=g) < 0.5).float()
    tw = 2 * torch.rand(m, 1, generator=g)
    return x.requires_grad_(), t.requires_grad_(), x0, xw, tw


def residuals(model, batch, k):
    x, t, x0, xw, tw = batch
    u = model(x, t)
    pde = d(u, t) - k * d(d(u, x), x)
    start = model(x0, torch.zeros_like(x0)) - exact(x0, torch.zeros_like(x0), k)
    wall = model(xw, tw)
    return {"pde": pde, "start": start, "wall": wall}


def ascend(weights, ceiling=50.0):
    for p in weights.parameters():
        p.register_hook(lambda grad: grad.mul(-1.0).mul(grad.numel()).clamp(-ceiling, ceiling))


torch.manual_seed(args.seed)
g = torch.Generator().manual_seed(args.seed)
k = args.diffusivity
model = Rod()
weights = PointWeights(pde=args.points, start=args.boundary, wall=args.boundary)
ascend(weights)
# the points stay fixed, their weights belong to them
batch = sample(args.points, args.boundary, g)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
weight_opt = torch.optim.SGD(weights.parameters(), lr=args.weight_lr)

for step in range(args.steps):
    res = residuals(model, batch, k)
    loss = weights(res)
    opt.zero_grad()
    weight_opt.zero_grad()
    loss.backward()
    opt.step()
    weight_opt.step()
    if step % 150 == 149:
        plain = sum((r ** 2).mean() for r in res.values()).item()
        mean_w = (2 * torch.sigmoid(weights.raw["start"])).mean().item()
        print(f"step {step + 1:4d}  weighted {loss.item():.5f}  plain {plain:.5f}  start weight {mean_w:.3f}")

with torch.no_grad():
    xs, ts = torch.meshgrid(torch.linspace(0, 1, 41), torch.linspace(0, 2, 41), indexing="ij")
    xs, ts = xs.reshape(-1, 1), ts.reshape(-1, 1)
    truth = exact(xs, ts, k)
    error = ((model(xs, ts) - truth).norm() / truth.norm()).item()
print(f"relative error {error:.4f}")
