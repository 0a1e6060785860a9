"""Gaussian oscillators of a dielectric function (De Sousa Meneses et al., 2006), fitted by variable projection.

The imaginary part of each oscillator is a Gaussian line, the real part its Kramers-Kronig partner, which is a
Dawson integral. Strengths enter linearly and are solved for; only centres and widths are searched.
"""
import math

import numpy as np
import torch
from torch import nn

torch.manual_seed(31)


def dawson_numpy(x, h=0.2, terms=24):
    """Rybicki's method."""
    n0 = 2.0 * np.round(0.5 * x / h)
    xp = x - n0 * h
    total = np.zeros_like(x)
    for k in range(1, 2 * terms, 2):
        up = np.exp(-(xp - k * h) ** 2) / (n0 + k)
        down = np.exp(-(xp + k * h) ** 2) / (n0 - k)
        total += up + down
    return total / math.sqrt(math.pi)


class Dawson(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        value = torch.from_numpy(dawson_numpy(x.detach().numpy()))
        ctx.save_for_backward(x, value)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, value = ctx.saved_tensors
        return grad * (1 - 2 * x * value)


class Oscillators(nn.Module):
    def __init__(self, centers, width):
        super().__init__()
        centers = torch.as_tensor(centers, dtype=torch.float64)
        self.center = nn.Parameter(centers.clone())
        self.log_width = nn.Parameter(torch.full_like(centers, math.log(width)))
        self.register_buffer("strength", torch.zeros(len(centers) + 1, dtype=torch.float64))

    def basis(self, w):
        """Columns of unit strength, real parts over imaginary parts, and the constant of high frequencies."""
        width = self.log_width.exp()
        minus = (w.unsqueeze(1) - self.center) / width
        plus = (w.unsqueeze(1) + self.center) / width
        imag = torch.exp(-minus ** 2) - torch.exp(-plus ** 2)
        real = (Dawson.apply(plus) - Dawson.apply(minus)) * 2 / math.sqrt(math.pi)
        flat = torch.cat([torch.ones_like(w), torch.zeros_like(w)]).unsqueeze(1)
        return torch.cat([torch.cat([real, imag]), flat], dim=1)

    def project(self, w, data):
        columns = self.basis(w)
        with torch.no_grad():
            self.strength.copy_(torch.linalg.lstsq(columns, data.unsqueeze(1)).solution.squeeze(1))
        return columns @ self.strength.clone() - data


def fit(model, w, data, rounds=4):
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=12, line_search_fn="strong_wolfe")
    trace = []

    def closure():
        optimizer.zero_grad()
        loss = 1e2 * model.project(w, data).pow(2).mean()
        loss.backward()
        return loss

    for k in range(rounds):
        optimizer.step(closure)
        with torch.no_grad():
            trace.append(1e2 * model.project(w, data).pow(2).mean().item())
        print(f"round {k}  misfit {trace[-1]:.6f}  centres {[round(v, 3) for v in model.center.tolist()]}")
    return trace


def measured(w):
    """Three lines, two of them overlapping, with noise in both parts."""
    truth = Oscillators([0.8, 1.3, 2.4], 0.2)
    with torch.no_grad():
        truth.log_width.copy_(torch.tensor([0.18, 0.28, 0.4], dtype=torch.float64).log())
        truth.strength.copy_(torch.tensor([1.5, 0.9, 0.6, 2.2], dtype=torch.float64))
        clean = truth.basis(w) @ truth.strength
    return clean + 0.01 * torch.randn_like(clean), truth


if __name__ == "__main__":
    w = torch.linspace(0.1, 3.5, 160, dtype=torch.float64)
    data, truth = measured(w)
    model = Oscillators([0.7, 1.4, 2.2], 0.25)
    trace = fit(model, w, data)
    print("widths   ", [round(v, 3) for v in model.log_width.exp().tolist()])
    print("strengths", [round(v, 3) for v in model.strength.tolist()])
