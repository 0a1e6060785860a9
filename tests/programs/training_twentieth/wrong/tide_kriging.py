"""Gaussian process for a tide gauge record: a periodic plus a smooth component.

Hyperparameters are found by maximising the marginal likelihood; the held-out part of the record is used to check the
calibration of the predictive intervals.
"""
import math

import torch
from torch import nn

torch.manual_seed(3)
torch.set_default_dtype(torch.float64)


def make_record(n=160):
    t = torch.sort(torch.rand(n) * 12.0).values
    level = 0.9 * torch.sin(2 * math.pi * t / 1.7) + 0.5 * torch.sin(2 * math.pi * t / 9.0 + 0.4)
    return t, level + 0.35 * torch.randn(n)


class PositiveValue(nn.Module):
    """A positive hyperparameter, kept inside the range in which the Cholesky factor is well behaved."""

    def __init__(self, value, low, high):
        super().__init__()
        self.log_value = nn.Parameter(torch.tensor(math.log(value)))
        self.low, self.high = low, high

    def forward(self):
        return self.log_value.exp().clamp(self.low, self.high)


class TideProcess(nn.Module):
    def __init__(self):
        super().__init__()
        self.tidal_scale = PositiveValue(1.0, 1e-2, 10.0)
        self.tidal_period = PositiveValue(1.6, 0.5, 4.0)
        self.tidal_length = PositiveValue(1.0, 0.2, 5.0)
        self.smooth_scale = PositiveValue(0.5, 1e-2, 10.0)
        self.smooth_length = PositiveValue(2.0, 0.5, 20.0)
        self.noise = PositiveValue(0.05, 0.06, 2.0)

    def kernel(self, a, b):
        d = a[:, None] - b[None, :]
        tidal = torch.sin(math.pi * d / self.tidal_period()) ** 2
        k_tidal = self.tidal_scale() ** 2 * torch.exp(-2.0 * tidal / self.tidal_length() ** 2)
        k_smooth = self.smooth_scale() ** 2 * torch.exp(-0.5 * (d / self.smooth_length()) ** 2)
        return k_tidal + k_smooth

    def factor(self, t):
        k = self.kernel(t, t)
        return torch.linalg.cholesky(k + (self.noise() ** 2 + 1e-6) * torch.eye(len(t)))

    def neg_log_marginal(self, t, y):
        chol = self.factor(t)
        alpha = torch.cholesky_solve(y[:, None], chol)[:, 0]
        return 0.5 * y @ alpha + chol.diagonal().log().sum() + 0.5 * len(t) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, t, y, t_new):
        chol = self.factor(t)
        k_new = self.kernel(t, t_new)
        mean = k_new.T @ torch.cholesky_solve(y[:, None], chol)[:, 0]
        v = torch.linalg.solve_triangular(chol, k_new, upper=False)
        var = self.kernel(t_new, t_new).diagonal() - v.pow(2).sum(0) + self.noise() ** 2
        return mean, var.clamp(min=1e-9)


def main():
    t, y = make_record()
    held = torch.arange(len(t)) % 4 == 0
    t_fit, y_fit, t_val, y_val = t[~held], y[~held], t[held], y[held]

    process = TideProcess()
    optimizer = torch.optim.Adam(process.parameters(), lr=0.03)
    for step in range(400):
        optimizer.zero_grad()
        loss = process.neg_log_marginal(t_fit, y_fit) / len(t_fit)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:4d}  nlml per point {loss.item():.4f}")

    mean, var = process.predict(t_fit, y_fit, t_val)
    rmse = (mean - y_val).pow(2).mean().sqrt().item()
    nlpd = (0.5 * (y_val - mean) ** 2 / var + 0.5 * torch.log(2 * math.pi * var)).mean().item()
    inside = ((y_val - mean).abs() < 1.96 * var.sqrt()).double().mean().item()
    print(f"nlml per point {loss.item():.4f}  rmse {rmse:.4f}  nlpd {nlpd:.4f}  inside 95% {inside:.2f}")
    for name, child in process.named_children():
        print(f"  {name:14s} {child().item():.4f}")
    return process, loss.item(), nlpd


if __name__ == "__main__":
    main()
