"""Bayesian regression of galaxy redshifts from five photometric bands by preconditioned Langevin dynamics.

The step size decays during burn-in, so that the chain first moves fast and then samples with small steps; the posterior
predictive is the average over the samples kept after burn-in.
"""
import math

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(11)
NOISE = 0.05


class PSGLD(Optimizer):
    """RMSprop-preconditioned stochastic gradient Langevin dynamics (Li et al., 2016), without the Gamma term."""

    def __init__(self, params, lr=1e-3, alpha=0.99, eps=1e-5, prior_precision=1.0):
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps, prior_precision=prior_precision))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        lr, alpha, eps = self.defaults["lr"], self.defaults["alpha"], self.defaults["eps"]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["square_avg"] = torch.ones_like(p)
                grad = p.grad + group["prior_precision"] * p
                square_avg = state["square_avg"]
                square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
                precond = 1.0 / (square_avg.sqrt() + eps)
                p.addcmul_(precond, grad, value=-0.5 * lr)
                p.add_(torch.randn_like(p) * (lr * precond).sqrt())
        return loss


def make_survey(n):
    z = torch.rand(n, 1) * 1.5
    centres = torch.tensor([0.1, 0.4, 0.7, 1.0, 1.3])
    flux = torch.sigmoid(4.0 * (z - centres)) + 0.3 * torch.sin(5.0 * z + centres)
    return flux + 0.02 * torch.randn(n, 5), z + NOISE * torch.randn(n, 1)


def potential(net, x, y, n_total):
    """Minus log likelihood of the whole catalogue, estimated from a batch."""
    return 0.5 * n_total * ((net(x) - y) ** 2).mean() / NOISE**2


def main():
    x, y = make_survey(1200)
    x_val, y_val = make_survey(400)
    net = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
    sampler = PSGLD(net.parameters(), lr=1e-1)
    burn_in, total = 2000, 3000
    schedule = LambdaLR(sampler, lambda step: max(math.exp(-6.0 * step / burn_in), math.exp(-6.0)))

    draws, energies = [], []
    for step in range(total):
        index = torch.randint(0, len(x), (100,))
        sampler.zero_grad()
        energy = potential(net, x[index], y[index], len(x))
        energy.backward()
        sampler.step()
        schedule.step()
        energies.append(energy.item())
        if step % 500 == 0:
            recent = energies[-100:]
            print(f"step {step:5d}  step size {schedule.get_last_lr()[0]:.2e}  energy {sum(recent) / len(recent):.1f}")
        if step >= burn_in and step % 20 == 0:
            with torch.no_grad():
                draws.append(net(x_val))

    draws = torch.stack(draws)
    mean = draws.mean(0)
    rmse = (mean - y_val).pow(2).mean().sqrt().item()
    single = (draws - y_val).pow(2).mean().sqrt().item()
    spread = draws.std(0).mean().item()
    print(f"posterior mean rmse {rmse:.4f}  single draw rmse {single:.4f}  spread {spread:.4f}  noise {NOISE}")
    return rmse, single, spread


if __name__ == "__main__":
    main()
