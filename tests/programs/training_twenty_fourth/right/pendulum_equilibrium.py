"""Rest positions of a chain of magnetic pendulums under side wind, learned with a deep equilibrium model."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def chain_data(n, size, gen, coupling):
    """Angles in equilibrium: each pendulum is pulled by its neighbours and pushed by the wind."""
    wind = 0.8 * torch.randn(n, size, generator=gen)
    angle = torch.zeros(n, size)
    for _ in range(200):
        angle = torch.tanh(angle @ coupling.t() + wind)
    return wind, angle + 0.01 * torch.randn(n, size, generator=gen)


def fixed_point(step, start, tol=1e-6, limit=300):
    z = start
    for _ in range(limit):
        new = step(z)
        if (new - z).abs().max() < tol:
            return new
        z = new
    return z


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, hidden) * 0.3 / hidden ** 0.5)
        self.inject = nn.Linear(inputs, hidden)

    def forward(self, z, x):
        # keep the map a contraction
        norm = torch.linalg.matrix_norm(self.weight, 2)
        weight = self.weight * (0.9 / norm.clamp(min=0.9))
        return torch.tanh(z @ weight.t() + self.inject(x))


class Equilibrium(nn.Module):
    def __init__(self, cell, hidden, tol=1e-6):
        super().__init__()
        self.cell, self.hidden, self.tol = cell, hidden, tol

    def forward(self, x):
        with torch.no_grad():
            z = fixed_point(lambda z: self.cell(z, x), x.new_zeros(len(x), self.hidden), self.tol)
        if not torch.is_grad_enabled():
            return z
        z = self.cell(z, x)
        point = z.detach().requires_grad_()
        image = self.cell(point, x.detach())

        def adjoint(grad):
            def step(y):
                return torch.autograd.grad(image, point, y, retain_graph=True)[0] + grad
            return fixed_point(step, grad, self.tol)

        z.register_hook(adjoint)
        return z


class WindModel(nn.Module):
    def __init__(self, size, hidden, tol=1e-6):
        super().__init__()
        self.core = Equilibrium(Cell(size, hidden), hidden, tol)
        self.read = nn.Linear(hidden, size)

    def forward(self, wind):
        return self.read(self.core(wind))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", type=int, default=10)
    p.add_argument("--hidden", type=int, default=24)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch", type=int, default=50)
    p.add_argument("--lr", type=float, default=5e-3)
    args = p.parse_args()

    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(31)
    side = torch.full((args.size - 1,), 0.4)
    coupling = torch.diag(side, 1) + torch.diag(side, -1)
    wind, angle = chain_data(600, args.size, gen, coupling)
    test_wind, test_angle = chain_data(200, args.size, gen, coupling)

    model = WindModel(args.size, args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        total = 0.0
        for idx in torch.randperm(len(wind), generator=gen).split(args.batch):
            loss = F.mse_loss(model(wind[idx]), angle[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        with torch.no_grad():
            test = F.mse_loss(model(test_wind), test_angle).item()
        print(f"epoch {epoch}  train {total / len(wind):.5f}  test {test:.5f}  (variance {test_angle.var():.4f})")


if __name__ == "__main__":
    main()
