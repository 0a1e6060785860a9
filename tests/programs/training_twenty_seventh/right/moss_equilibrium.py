"""Equilibrium network on a moss-humidity grid: hidden state is the fixed point of one graph layer."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--side", type=int, default=5)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--lr", type=float, default=2e-2)
parser.add_argument("--tol", type=float, default=1e-5)
args = parser.parse_args([])


def fixed_point(f, z, tol, max_iter=80):
    for _ in range(max_iter):
        new = f(z)
        if (new - z).norm() <= tol * (1e-6 + new.norm()):
            return new
        z = new
    return z


class GraphCell(nn.Module):
    """z <- tanh(A z W + x U + b) with W scaled down, so that the map is a contraction."""

    def __init__(self, adj, in_dim, width):
        super().__init__()
        self.register_buffer("adj", adj)
        self.w = nn.Parameter(torch.randn(width, width) / width ** 0.5)
        self.u = nn.Linear(in_dim, width)

    def forward(self, z, x):
        w = 0.7 * self.w / torch.linalg.matrix_norm(self.w, ord=2).clamp(min=1.0)
        return torch.tanh(self.adj @ z @ w + self.u(x))


class Equilibrium(nn.Module):
    def __init__(self, cell, width, tol):
        super().__init__()
        self.cell, self.width, self.tol = cell, width, tol
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros(*x.shape[:2], self.width)
            z = fixed_point(lambda z: self.cell(z, x), z, self.tol)
        if torch.is_grad_enabled():
            z = self.cell(z, x)
            z0 = z.detach().requires_grad_()
            f0 = self.cell(z0, x)

            def backward_hook(grad):
                vjp = lambda v: torch.autograd.grad(f0, z0, v, retain_graph=True)[0] + grad
                return fixed_point(vjp, grad, self.tol)

            z.register_hook(backward_hook)
        return self.head(z).squeeze(-1)


def grid_adjacency(side):
    n = side * side
    a = torch.eye(n)
    for r in range(side):
        for c in range(side):
            k = r * side + c
            if c + 1 < side:
                a[k, k + 1] = a[k + 1, k] = 1
            if r + 1 < side:
                a[k, k + side] = a[k + side, k] = 1
    deg = a.sum(1)
    return a / (deg[:, None] * deg[None, :]).sqrt()


def make_data(n, adj, g):
    """Springs and dry spots; humidity is what remains after long diffusion."""
    nodes = adj.shape[0]
    source = (torch.rand(n, nodes, generator=g) < 0.12).float()
    sink = (torch.rand(n, nodes, generator=g) < 0.12).float()
    solve = torch.linalg.inv(torch.eye(nodes) - 0.9 * adj)
    y = torch.tanh((source - sink) @ solve.T)
    return torch.stack([source, sink], -1), y + 0.02 * torch.randn(n, nodes, generator=g)


torch.manual_seed(2)
g = torch.Generator().manual_seed(2)
adj = grid_adjacency(args.side)
x, y = make_data(256, adj, g)
x_test, y_test = make_data(128, adj, g)
model = Equilibrium(GraphCell(adj, 2, args.width), args.width, args.tol)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
for epoch in range(args.epochs):
    total = 0.0
    for idx in torch.randperm(len(x), generator=g).split(args.batch):
        loss = F.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1:2d}  mse {total / len(x):.4f}")
model.eval()
with torch.no_grad():
    test_mse = F.mse_loss(model(x_test), y_test).item()
print(f"test mse {test_mse:.4f}  (variance {y_test.var().item():.4f})")
