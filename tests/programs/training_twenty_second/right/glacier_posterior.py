"""Bayesian calibration of a glacier mass-balance model with a full-rank Gaussian variational posterior.

Gradient estimator: path derivative only ("sticking the landing", Roeder et al. 2017).
"""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.distributions import MultivariateNormal

NOISE = 0.3


@dataclass
class Settings:
    steps: int = 250
    samples: int = 8
    lr: float = 5e-2
    seed: int = 12


def make_observations(gen, n=40):
    """Yearly balance (m w.e.) against summer temperature and winter precipitation anomalies."""
    temperature = torch.randn(n, generator=gen)
    precipitation = 0.6 * temperature + 0.8 * torch.randn(n, generator=gen)
    design = torch.stack([torch.ones(n), temperature, precipitation], dim=1)
    truth = torch.tensor([-0.4, -0.9, 0.5])
    return design, design @ truth + NOISE * torch.randn(n, generator=gen)


class Posterior(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(dim))
        self.log_diag = nn.Parameter(torch.full((dim,), -2.0))
        self.lower = nn.Parameter(torch.zeros(dim, dim))

    def scale_tril(self):
        return self.lower.tril(-1) + torch.diag(self.log_diag.exp())

    def sample(self, n):
        eps = torch.randn(n, len(self.loc))
        return self.loc + eps @ self.scale_tril().T

    def log_prob(self, theta):
        # only the samples carry a gradient here
        return MultivariateNormal(self.loc.detach(), scale_tril=self.scale_tril().detach()).log_prob(theta)


def log_joint(theta, design, y):
    residual = y - theta @ design.T
    log_lik = -0.5 * (residual / NOISE).pow(2).sum(-1) - len(y) * math.log(NOISE * math.sqrt(2 * math.pi))
    log_prior = -0.5 * theta.pow(2).sum(-1) - theta.shape[-1] * 0.5 * math.log(2 * math.pi)
    return log_lik + log_prior


def negative_elbo(q, design, y, n):
    theta = q.sample(n)
    return (q.log_prob(theta) - log_joint(theta, design, y)).mean()


def exact_posterior(design, y):
    """Conjugate result, to report the quality of the fit."""
    precision = design.T @ design / NOISE ** 2 + torch.eye(design.shape[1])
    cov = torch.linalg.inv(precision)
    return cov @ design.T @ y / NOISE ** 2, cov


def fit(settings):
    torch.manual_seed(settings.seed)
    design, y = make_observations(torch.Generator().manual_seed(settings.seed))
    q = Posterior(design.shape[1])
    opt = torch.optim.Adam(q.parameters(), lr=settings.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, settings.steps)
    for step in range(settings.steps):
        loss = negative_elbo(q, design, y, settings.samples)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 50 == 49:
            print(f"step {step + 1:3d}  -ELBO {loss.item():.3f}")
    return q, design, y


if __name__ == "__main__":
    q, design, y = fit(Settings())
    mean, cov = exact_posterior(design, y)
    tril = q.scale_tril().detach()
    print("mean   fitted", [round(v, 3) for v in q.loc.tolist()], " exact", [round(v, 3) for v in mean.tolist()])
    print("sd     fitted", [round(v, 4) for v in (tril @ tril.T).diagonal().sqrt().tolist()],
          " exact", [round(v, 4) for v in cov.diagonal().sqrt().tolist()])
