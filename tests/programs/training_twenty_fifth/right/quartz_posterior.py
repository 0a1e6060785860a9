"""Bayesian regression of a sensor's drift curve with stochastic-gradient Langevin dynamics.

The potential is U(w) = -log p(w) - sum_i log p(y_i | x_i, w); a minibatch gives an unbiased estimate of its gradient.
Samples after burn-in form the posterior predictive.
"""
import math

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class SGLD(Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            eps = group["lr"]
            for p in group["params"]:
                p.add_(p.grad, alpha=-0.5 * eps)
                p.add_(torch.randn_like(p), alpha=math.sqrt(eps))


class DriftCurve(nn.Module):
    """Linear in the weights: a bias and a few cosines."""

    def __init__(self, order=5):
        super().__init__()
        self.register_buffer("k", math.pi * torch.arange(1, order + 1) / 2)
        self.out = nn.Linear(order, 1)

    def features(self, x):
        return torch.cos(self.k * (x + 1))

    def forward(self, x):
        return self.out(self.features(x))


class Posterior:
    def __init__(self, noise=0.3, prior_std=1.0, batch=50, lr=2e-4):
        self.noise, self.prior_std, self.batch, self.lr = noise, prior_std, batch, lr

    def potential(self, model, x, y, total):
        nll = 0.5 * ((model(x) - y) / self.noise).pow(2).sum() * (total / len(x))
        prior = 0.5 * sum((p / self.prior_std).pow(2).sum() for p in model.parameters())
        return nll + prior

    def sample(self, model, data, epochs, burn_in, thin=2):
        loader = DataLoader(data, self.batch, shuffle=True)
        opt = SGLD(model.parameters(), self.lr)
        kept, step = [], 0
        for epoch in range(epochs):
            running = 0.0
            for x, y in loader:
                u = self.potential(model, x, y, len(data))
                opt.zero_grad()
                u.backward()
                opt.step()
                running += u.item() / len(loader)
                step += 1
                if epoch >= burn_in and step % thin == 0:
                    kept.append(nn.utils.parameters_to_vector(model.parameters()).detach().clone())
            if epoch % (epochs // 6) == 0:
                print(f"epoch {epoch:5d}  potential {running:.1f}  samples {len(kept)}")
        return torch.stack(kept)


@torch.no_grad()
def predictive(model, samples, x, noise):
    keep = nn.utils.parameters_to_vector(model.parameters()).clone()
    curves = []
    for w in samples:
        nn.utils.vector_to_parameters(w, model.parameters())
        curves.append(model(x))
    nn.utils.vector_to_parameters(keep, model.parameters())
    curves = torch.stack(curves)
    return curves.mean(0), (curves.var(0) + noise**2).sqrt()


def main():
    torch.manual_seed(8)
    noise = 0.3

    def curve(x):
        return torch.sin(3 * x) * torch.exp(-0.3 * x) + 0.2

    x = -1 + 2 * torch.rand(100, 1)
    y = curve(x) + noise * torch.randn_like(x)
    x_test = torch.linspace(-1, 1, 400)[:, None]
    y_test = curve(x_test) + noise * torch.randn_like(x_test)

    model = DriftCurve()
    posterior = Posterior(noise)
    samples = posterior.sample(model, TensorDataset(x, y), epochs=1200, burn_in=200)
    mean, std = predictive(model, samples[::5], x_test, noise)
    inside = ((y_test - mean).abs() < 1.96 * std).float().mean().item()
    print(f"rmse {(mean - y_test).pow(2).mean().sqrt().item():.3f}  95% interval covers {inside:.3f}")
    return model, samples, x, y, noise


if __name__ == "__main__":
    model, samples, x, y, noise = main()
