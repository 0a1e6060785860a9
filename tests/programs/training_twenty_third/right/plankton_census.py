"""Bayesian Poisson regression of plankton counts with a full-rank Gaussian posterior.

The ELBO is estimated with the path-derivative gradient of Roeder, Wu & Duvenaud, "Sticking the landing" (2017).
"""
import math

import torch
import torch.nn as nn

FEATURES = ["bias", "temperature", "nitrate", "light", "salinity"]
PRIOR_STD = 2.0


def sample_stations(n, gen):
    x = torch.randn(n, len(FEATURES), generator=gen)
    x[:, 0] = 1.0
    x[:, 3] = 0.7 * x[:, 1] + 0.5 * x[:, 3]  # light follows temperature
    w = torch.tensor([0.8, 0.5, -0.3, 0.2, 0.0])
    return x, torch.poisson((x @ w).exp(), generator=gen)


class GaussianPosterior(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(dim))
        self.lower = nn.Parameter(torch.zeros(dim, dim))
        self.log_diag = nn.Parameter(torch.full((dim,), -2.0))

    def factor(self):
        return torch.tril(self.lower, diagonal=-1) + torch.diag(self.log_diag.exp())

    def draw(self, k):
        eps = torch.randn(k, len(self.mean))
        return self.mean + eps @ self.factor().T

    def log_prob(self, w):
        mean, factor, log_diag = self.mean.detach(), self.factor().detach(), self.log_diag.detach()
        z = torch.linalg.solve_triangular(factor, (w - mean).T, upper=False)
        return -0.5 * (z ** 2).sum(dim=0) - log_diag.sum() - 0.5 * len(mean) * math.log(2 * math.pi)


def log_joint(w, x, y):
    eta = w @ x.T  # [draw, station]
    loglik = (y * eta - eta.exp() - torch.lgamma(y + 1)).sum(dim=1)
    prior = (-0.5 * (w / PRIOR_STD) ** 2 - math.log(PRIOR_STD) - 0.5 * math.log(2 * math.pi)).sum(dim=1)
    return loglik + prior


def fit(q, x, y, steps=1500, draws=8):
    optimizer = torch.optim.Adam(q.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 0.01 ** (t / steps))
    for step in range(steps):
        w = q.draw(draws)
        elbo = (log_joint(w, x, y) - q.log_prob(w)).mean()
        optimizer.zero_grad()
        (-elbo).backward()
        optimizer.step()
        schedule.step()
        if step % 300 == 0 or step == steps - 1:
            print(f"step {step:4d}  elbo {elbo.item():10.3f}")
    return q


def laplace(x, y, iterations=25):
    """Reference: Newton's method for the mode, inverse Hessian for the covariance."""
    w = torch.zeros(x.shape[1])
    for _ in range(iterations):
        rate = (x @ w).exp()
        hessian = x.T @ (rate.unsqueeze(1) * x) + torch.eye(len(w)) / PRIOR_STD ** 2
        w = w + torch.linalg.solve(hessian, x.T @ (y - rate) - w / PRIOR_STD ** 2)
    return w, torch.linalg.inv(hessian)


def main():
    torch.manual_seed(77)
    gen = torch.Generator().manual_seed(77)
    x, y = sample_stations(150, gen)
    q = fit(GaussianPosterior(x.shape[1]), x, y)
    mode, cov = laplace(x, y)
    with torch.no_grad():
        std = (q.factor() @ q.factor().T).diagonal().sqrt()
    print(f"{'':12s} {'VI mean':>8s} {'std':>7s} {'Laplace':>9s} {'std':>7s}")
    for i, name in enumerate(FEATURES):
        print(f"{name:12s} {q.mean[i].item():+8.3f} {std[i].item():7.4f} {mode[i].item():+9.3f} {cov[i, i].sqrt().item():7.4f}")
    return q, std, mode, cov


if __name__ == "__main__":
    main()
