"""Stein variational gradient descent (Liu & Wang, 2016): an ensemble of particles for reaction rates.

Each particle holds the log rates of A -> B -> C; the data are noisy concentrations from a closed form.
"""
import math

import torch
from torch import nn

torch.manual_seed(6)
torch.set_num_threads(1)

N_PARTICLES = 50
NOISE = 0.03
TRUE_RATES = torch.tensor([1.2, 0.5])
TIMES = torch.linspace(0.2, 6.0, 12)


def concentrations(log_rates):
    """Concentrations of A and B for a batch of rate pairs, shape (batch, times, 2)."""
    k1, k2 = log_rates.exp().unsqueeze(-1).unbind(1)
    gap = k2 - k1
    gap = torch.where(gap.abs() < 1e-3, torch.full_like(gap, 1e-3), gap)
    a = torch.exp(-k1 * TIMES)
    b = k1 / gap * (torch.exp(-k1 * TIMES) - torch.exp(-(k1 + gap) * TIMES))
    return torch.stack([a, b], dim=-1)


observed = concentrations(TRUE_RATES.log().unsqueeze(0)) + NOISE * torch.randn(1, len(TIMES), 2)


def log_posterior(log_rates):
    misfit = (concentrations(log_rates) - observed) / NOISE
    log_lik = -0.5 * misfit.pow(2).sum((1, 2))
    log_prior = -0.5 * log_rates.pow(2).sum(1)
    return log_lik + log_prior


class Particles(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.theta = nn.Parameter(0.7 * torch.randn(n, 2))

    def kernel(self):
        """RBF kernel between particles and constant copies of them, with the median bandwidth."""
        fixed = self.theta.detach()
        sq = (self.theta.unsqueeze(1) - fixed.unsqueeze(0)).pow(2).sum(-1)
        bandwidth = sq.detach().median() / math.log(len(fixed) + 1)
        return torch.exp(-sq / (bandwidth + 1e-8))

    def stein_direction(self):
        score = torch.autograd.grad(log_posterior(self.theta).sum(), self.theta)[0]
        k = self.kernel()
        repulsion = -torch.autograd.grad(k.sum(), self.theta)[0]
        return (k.detach() @ score + repulsion) / len(k)


particles = Particles(N_PARTICLES)
optimizer = torch.optim.Adam(particles.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=800, eta_min=1e-4)

for step in range(800):
    particles.theta.grad = -particles.stein_direction()
    optimizer.step()
    scheduler.step()
    if (step + 1) % 200 == 0:
        with torch.no_grad():
            lp = log_posterior(particles.theta).mean()
        spread = particles.theta.detach().std(0)
        print(f"step {step + 1:3d}  log posterior {lp:.3f}  spread {spread[0]:.4f} {spread[1]:.4f}")

# reference posterior on a fine grid
axis1 = torch.linspace(-0.1, 0.5, 201)
axis2 = torch.linspace(-1.0, -0.4, 201)
cells = torch.cartesian_prod(axis1, axis2)
prob = torch.softmax(log_posterior(cells).double(), 0).unsqueeze(1)
grid_mean = (prob * cells).sum(0)
grid_std = (prob * (cells - grid_mean).pow(2)).sum(0).sqrt()

theta = particles.theta.detach()
print("mean", [round(v, 4) for v in theta.mean(0).tolist()], "grid", [round(v, 4) for v in grid_mean.tolist()])
print("std ", [round(v, 4) for v in theta.std(0).tolist()], "grid", [round(v, 4) for v in grid_std.tolist()])
