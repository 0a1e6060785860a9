"""Steady temperature of a rod with an equilibrium network.

The source term q(u) of a heated rod depends on the temperature.  The network's hidden state is the fixed point of one
layer, z = f(z, x), as in deep equilibrium models: the forward solver keeps no history, and the backward pass solves the
linear system of the implicit function theorem.
"""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

SEED = 3
GRID = 24
N_TRAIN, N_TEST = 400, 150
EPOCHS, BATCH = 30, 50


def solve_rod(sources, sweeps=400):
    """Damped fixed-point iteration for u'' = -s + 0.8 tanh(3u), both ends held at zero."""
    h = 1.0 / (GRID + 1)
    laplace = (np.diag(np.full(GRID, 2.0)) - np.diag(np.ones(GRID - 1), 1) - np.diag(np.ones(GRID - 1), -1)) / h ** 2
    inverse = np.linalg.inv(laplace)
    u = np.zeros_like(sources)
    for _ in range(sweeps):
        u = 0.7 * u + 0.3 * (sources - 0.8 * np.tanh(3 * u)) @ inverse.T
    return u


def rods(n, rng):
    grid = np.linspace(0, 1, GRID + 2)[1:-1]
    center, width, strength = rng.uniform(0.2, 0.8, n), rng.uniform(0.05, 0.25, n), rng.uniform(2, 10, n)
    sources = strength[:, None] * np.exp(-((grid - center[:, None]) / width[:, None]) ** 2)
    return torch.tensor(sources / 5, dtype=torch.float32), torch.tensor(solve_rod(sources), dtype=torch.float32)


def iterate(f, start, tolerance=1e-5, limit=60):
    z = start
    for _ in range(limit):
        new = f(z)
        if (new - z).norm() < tolerance * (1e-8 + new.norm()):
            return new
        z = new
    return z


class Equilibrium(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.recur = nn.utils.parametrizations.spectral_norm(nn.Linear(width, width, bias=False))
        self.inject = nn.Linear(GRID, width)
        self.readout = nn.Linear(width, GRID)

    def layer(self, z, drive, weight):
        return torch.tanh(0.8 * F.linear(z, weight) + drive)

    def forward(self, x):
        weight = self.recur.weight
        drive = self.inject(x)
        with torch.no_grad():
            z = iterate(lambda z: self.layer(z, drive, weight), torch.zeros_like(drive))
        z = self.layer(z, drive, weight)
        if self.training:
            at = z.detach().requires_grad_()
            again = self.layer(at, drive.detach(), weight.detach())

            def implicit(grad):
                def step(v):
                    return torch.autograd.grad(again, at, v, retain_graph=True)[0] + grad

                return iterate(step, grad)

            z.register_hook(implicit)
        return self.readout(z)


@torch.no_grad()
def relative_error(net, x, u):
    net.eval()
    error = ((net(x) - u).norm(dim=1) / u.norm(dim=1)).mean().item()
    net.train()
    return error


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    x, u = rods(N_TRAIN, rng)
    x_test, u_test = rods(N_TEST, rng)
    unit = u.std()
    u, u_test = u / unit, u_test / unit

    net = Equilibrium()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.4)
    for epoch in range(EPOCHS):
        for rows in torch.randperm(N_TRAIN).split(BATCH):
            loss = F.mse_loss(net(x[rows]), u[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.5f}  relative error {relative_error(net, x_test, u_test):.4f}")


if __name__ == "__main__":
    main()
