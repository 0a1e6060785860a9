"""Variational posterior of a supernova Hubble diagram with a full-rank Gaussian.

The path-derivative estimator is used ("sticking the landing", Roeder et al., 2017): the density of q is evaluated with
stopped parameters, so that the score term, whose mean is zero, does not add noise when q is close to the posterior.
The reported q is a running average of the iterates of the second half.
"""
import copy

import torch
from torch import nn
from torch.distributions import MultivariateNormal, Normal, StudentT

torch.manual_seed(8)
LIGHT = 299.8  # speed of light in units of 1000 km/s


def distance_modulus(z, omega_m, w):
    """Flat wCDM; the comoving distance is integrated by the trapezoid rule. Parameters (S,), redshifts (N,)."""
    grid = torch.linspace(0, 1, 24)
    zz = z[:, None] * grid
    omega_m, w = omega_m[:, None, None], w[:, None, None]
    expansion = (omega_m * (1 + zz) ** 3 + (1 - omega_m) * (1 + zz) ** (3 * (1 + w))).sqrt()
    comoving = torch.trapezoid(1 / expansion, grid, dim=-1) * z
    return 5 * torch.log10((1 + z) * comoving * LIGHT * 10 / 0.7) + 25


def make_catalogue(n=200):
    z = torch.rand(n) * 1.2 + 0.02
    mu = distance_modulus(z, torch.tensor([0.3]), torch.tensor([-1.0]))[0]
    noise = 0.12 * torch.randn(n)
    outlier = torch.rand(n) < 0.05
    return z, mu + torch.where(outlier, 6 * noise, noise)


def log_joint(theta, z, mu):
    """theta: logit of omega_m, w, magnitude offset, log scatter, for S draws at once."""
    omega_m, w, offset, scatter = torch.sigmoid(theta[:, 0]), theta[:, 1], theta[:, 2], theta[:, 3].exp()
    model = distance_modulus(z, omega_m, w) + offset[:, None]
    likelihood = StudentT(4.0, model, scatter[:, None]).log_prob(mu).sum(-1)
    prior = Normal(torch.tensor([-0.8, -1.0, 0.0, -2.0]), torch.tensor([0.7, 0.4, 0.2, 0.7])).log_prob(theta).sum(-1)
    return likelihood + prior


class FullRank(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.loc = nn.Parameter(torch.tensor([-0.5, -0.8, 0.0, -1.5]))
        self.log_diag = nn.Parameter(torch.full((dim,), -2.0))
        self.below = nn.Parameter(torch.zeros(dim, dim))

    def factor(self):
        return torch.tril(self.below, -1) + torch.diag(self.log_diag.exp())

    def draw(self, n):
        return self.loc + torch.randn(n, len(self.loc)) @ self.factor().T

    def log_prob(self, theta):
        return MultivariateNormal(self.loc.detach(), scale_tril=self.factor().detach()).log_prob(theta)


@torch.no_grad()
def blend(average, q, count):
    for a, p in zip(average.parameters(), q.parameters()):
        a.lerp_(p, 1.0 / count)


def main():
    z, mu = make_catalogue()
    q = FullRank(4)
    average = copy.deepcopy(q).requires_grad_(False)
    optimizer = torch.optim.Adam(q.parameters(), lr=2e-2)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[400], gamma=0.3)
    total = 800
    for step in range(total):
        theta = q.draw(8)
        elbo = (log_joint(theta, z, mu) - q.log_prob(theta)).mean()
        optimizer.zero_grad()
        (-elbo).backward()
        optimizer.step()
        scheduler.step()
        if step >= total // 2:
            blend(average, q, step - total // 2 + 1)
        if step % 200 == 0:
            print(f"step {step:4d}  elbo {elbo.item():.3f}")

    with torch.no_grad():
        theta = average.draw(2000)
        elbo = (log_joint(theta, z, mu) - average.log_prob(theta)).mean().item()
    print(f"elbo of the averaged posterior {elbo:.3f}")
    names = ["omega_m", "w", "offset", "scatter"]
    values = torch.stack([theta[:, 0].sigmoid(), theta[:, 1], theta[:, 2], theta[:, 3].exp()], dim=1)
    for name, m, s in zip(names, values.mean(0).tolist(), values.std(0).tolist()):
        print(f"  {name:8s} {m:7.3f} +- {s:.3f}")
    print(f"  correlation of omega_m and w {torch.corrcoef(theta[:, :2].T)[0, 1].item():.2f}")


if __name__ == "__main__":
    main()
