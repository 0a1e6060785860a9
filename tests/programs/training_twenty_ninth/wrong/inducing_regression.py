"""Sparse variational Gaussian process (whitened inducing points, minibatches) for noisy regression."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def truth(x):
    return torch.sin(2.0 * x) + 0.4 * x


def make_table(count):
    """A table with the input in its first column and the response in its last."""
    x = 6 * torch.rand(count, 1) - 3
    return torch.cat([x, truth(x) + 0.2 * torch.randn(count, 1)], dim=1)


class RBF(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.log_length = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, a, b):
        length = self.log_length.exp()
        square = ((a / length).unsqueeze(1) - (b / length).unsqueeze(0)).pow(2).sum(dim=-1)
        return (2 * self.log_scale).exp() * torch.exp(-0.5 * square)

    def diagonal(self, a):
        return (2 * self.log_scale).exp().expand(len(a))


class SparseGP(nn.Module):
    def __init__(self, inducing):
        super().__init__()
        size = len(inducing)
        self.inducing = nn.Parameter(inducing.clone())
        self.kernel = RBF(inducing.shape[1])
        self.loc = nn.Parameter(torch.zeros(size))
        self.raw_tril = nn.Parameter(torch.zeros(size, size))
        self.raw_noise = nn.Parameter(torch.tensor(-1.0))
        self.register_buffer("jitter", 1e-4 * torch.eye(size))

    @property
    def noise(self):
        return F.softplus(self.raw_noise) + 1e-4

    def tril(self):
        return torch.tril(self.raw_tril, -1) + torch.diag(self.raw_tril.diagonal().exp())

    def forward(self, x):
        """Mean and variance of the latent function at x."""
        factor = torch.linalg.cholesky(self.kernel(self.inducing, self.inducing) + self.jitter)
        cross = torch.linalg.solve_triangular(factor, self.kernel(self.inducing, x), upper=False)
        mean = cross.t() @ self.loc
        spread = (self.tril().t() @ cross).pow(2).sum(dim=0)
        var = self.kernel.diagonal(x) - cross.pow(2).sum(dim=0) + spread
        return mean, var.clamp_min(1e-6)

    def expected_log_lik(self, x, y):
        mean, var = self(x)
        noise = self.noise
        return -0.5 * (math.log(2 * math.pi) + noise.log() + ((y - mean) ** 2 + var) / noise)

    def kl(self):
        tril = self.tril()
        return 0.5 * (tril.pow(2).sum() + self.loc.pow(2).sum() - len(self.loc)) - tril.diagonal().log().sum()


def train(model, table, steps, batch, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    x, y = table[:, :1], table[:, 1:]
    for step in range(steps):
        rows = torch.randperm(len(table))[:batch]
        bound = model.expected_log_lik(x[rows], y[rows]).mean() - model.kl() / len(table)
        optimizer.zero_grad()
        (-bound).backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step:3d}  bound per point {bound.item():.3f}  noise std {model.noise.sqrt().item():.3f}")
    return bound.item()


@torch.no_grad()
def report(model):
    grid = torch.linspace(-2.5, 2.5, 6).unsqueeze(1)
    mean, var = model(grid)
    for point, m, v in zip(grid.flatten(), mean, var):
        print(f"x {point:+.2f}  f {m:+.3f} +- {v.sqrt():.3f}  true {truth(point):+.3f}")


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    table = make_table(500)
    model = SparseGP(torch.linspace(-3, 3, 15).unsqueeze(1))
    bound = train(model, table, steps=151, batch=100, lr=5e-2)
    report(model)
    length = model.kernel.log_length.exp().item()
    print(f"length {length:.3f}  scale {model.kernel.log_scale.exp().item():.3f}  noise {model.noise.sqrt().item():.3f}")
    return model, table, bound


if __name__ == "__main__":
    model, table, bound = main()
