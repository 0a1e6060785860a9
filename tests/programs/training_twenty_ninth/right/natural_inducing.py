"""Stochastic variational GP regression: natural gradients for q(u), Adam for the kernel (Hensman et al. 2013)."""
import math

import torch
from torch import nn


def truth(x):
    return torch.sin(3.0 * x) * torch.exp(-0.2 * x)


def make_data(count, noise=0.15):
    x = 4 * torch.rand(count, 1)
    return x, truth(x).squeeze(-1) + noise * torch.randn(count)


class NaturalSVGP(nn.Module):
    """q(u) = N(m, S) is kept by its natural parameters S^-1 m and S^-1."""

    def __init__(self, inducing):
        super().__init__()
        size = len(inducing)
        self.register_buffer("inducing", inducing)
        self.register_buffer("shift", torch.zeros(size))
        self.register_buffer("precision", torch.eye(size))
        self.log_length = nn.Parameter(torch.tensor(-0.5))
        self.log_scale = nn.Parameter(torch.tensor(0.0))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))
        with torch.no_grad():
            self.precision.copy_(torch.linalg.inv(self.inducing_covariance()))

    def kernel(self, a, b):
        square = ((a.unsqueeze(1) - b.unsqueeze(0)) / self.log_length.exp()).pow(2).sum(dim=-1)
        return (2 * self.log_scale).exp() * torch.exp(-0.5 * square)

    def inducing_covariance(self):
        return self.kernel(self.inducing, self.inducing) + 1e-5 * torch.eye(len(self.inducing))

    def moments(self):
        cov = torch.linalg.inv(self.precision)
        return cov @ self.shift, cov

    def project(self, x):
        """Kzz^-1 Kzx and the conditional variance of f(x) given u."""
        cross = self.kernel(self.inducing, x)
        weights = torch.cholesky_solve(cross, torch.linalg.cholesky(self.inducing_covariance()))
        conditional = (2 * self.log_scale).exp() - (cross * weights).sum(dim=0)
        return weights, conditional.clamp_min(0.0)

    def predict(self, x):
        mean, cov = self.moments()
        weights, conditional = self.project(x)
        return weights.t() @ mean, conditional + (weights * (cov @ weights)).sum(dim=0)

    def bound(self, x, y, total):
        f_mean, f_var = self.predict(x)
        noise = (2 * self.log_noise).exp()
        fit = -0.5 * (math.log(2 * math.pi) + noise.log() + ((y - f_mean) ** 2 + f_var) / noise)
        prior = torch.distributions.MultivariateNormal(torch.zeros(len(self.inducing)), self.inducing_covariance())
        q = torch.distributions.MultivariateNormal(*self.moments())
        return total * fit.mean() - torch.distributions.kl_divergence(q, prior)

    @torch.no_grad()
    def natural_step(self, x, y, total, rate):
        """The exact conjugate update for this batch, mixed in with weight `rate`."""
        weights, _ = self.project(x)
        beta = (-2 * self.log_noise).exp() * total / len(x)
        self.shift.lerp_(beta * weights @ y, rate)
        target = torch.linalg.inv(self.inducing_covariance()) + beta * weights @ weights.t()
        self.precision.lerp_(0.5 * (target + target.t()), rate)


def fit(model, x, y, steps=110, batch=100, lr=2e-2):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        rows = torch.randperm(len(x))[:batch]
        model.natural_step(x[rows], y[rows], len(x), rate=(1 + step) ** -0.6)
        bound = model.bound(x[rows], y[rows], len(x))
        optimizer.zero_grad()
        (-bound / len(x)).backward()
        optimizer.step()
        if step % 40 == 0 or step == steps - 1:
            print(f"step {step:3d}  bound per point {bound.item() / len(x):.3f}")


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(12)
    torch.set_num_threads(1)
    x, y = make_data(500)
    model = NaturalSVGP(torch.linspace(0, 4, 16).unsqueeze(1))
    fit(model, x, y)
    grid = torch.linspace(0.1, 3.9, 100).unsqueeze(1)
    with torch.no_grad():
        mean, var = model.predict(grid)
    error = (mean - truth(grid).squeeze(-1)).pow(2).mean().sqrt().item()
    print(f"error {error:.4f}  stated std {var.mean().sqrt():.4f}  noise {model.log_noise.exp().item():.3f}")
    print(f"length {model.log_length.exp().item():.3f}  scale {model.log_scale.exp().item():.3f}")
    return model, x, y, error


if __name__ == "__main__":
    model, x, y, error = main()
