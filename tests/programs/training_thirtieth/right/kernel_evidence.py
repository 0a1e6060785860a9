"""Hyperparameters of a Gaussian process from the gradient of its evidence.

    d NLL / d theta = 1/2 sum_ij (K^-1 - a a^T)_ij  dK_ij / d theta,   a = K^-1 (y - m)

The matrix of weights comes from one factorisation per step; only the kernel itself is differentiated. The constant
mean m has its closed form (generalised least squares).
"""
import math

import torch
from torch import nn

torch.manual_seed(6)

STEPS = 70


class ArdKernel(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dims, dtype=torch.float64))
        self.log_amplitude = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.log_noise = nn.Parameter(torch.tensor(-1.0, dtype=torch.float64))

    def cross(self, a, b):
        scale = self.log_scale.exp()
        gap = (a / scale).unsqueeze(1) - (b / scale).unsqueeze(0)
        return (2 * self.log_amplitude).exp() * torch.exp(-0.5 * gap.pow(2).sum(dim=-1))

    def forward(self, x):
        k = self.cross(x, x)
        k.diagonal().add_((2 * self.log_noise).exp())
        return k


class GaussianProcess(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.kernel = ArdKernel(x.shape[1])
        self.register_buffer("x", x)
        self.register_buffer("y", y)
        self.register_buffer("mean", y.mean())

    @torch.no_grad()
    def weights(self, k):
        """The matrix K^-1 - a a^T, and the negative log evidence; renews the mean."""
        chol = torch.linalg.cholesky(k)
        inverse = torch.cholesky_inverse(chol)
        column = inverse.sum(dim=1)
        self.mean.copy_((column @ self.y) / column.sum())
        r = self.y - self.mean
        a = inverse @ r
        nll = 0.5 * r @ a + chol.diagonal().log().sum() + 0.5 * len(r) * math.log(2 * math.pi)
        return inverse - torch.outer(a, a), nll.item()

    def objective(self):
        k = self.kernel(self.x)
        w, nll = self.weights(k)
        return 0.5 * (w * k).sum(), nll

    @torch.no_grad()
    def predict(self, new):
        k = self.kernel(self.x)
        self.weights(k)
        chol = torch.linalg.cholesky(k)
        cross = self.kernel.cross(self.x, new)
        a = torch.cholesky_solve((self.y - self.mean).unsqueeze(1), chol)
        v = torch.linalg.solve_triangular(chol, cross, upper=False)
        variance = (2 * self.kernel.log_amplitude).exp() - v.pow(2).sum(dim=0)
        return self.mean + (cross.T @ a).squeeze(1), variance


def fit(gp):
    optimizer = torch.optim.Adam(gp.parameters(), lr=0.08)
    trace = []
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        surrogate, nll = gp.objective()
        surrogate.backward()
        optimizer.step()
        trace.append(nll)
        if step % 10 == 0 or step == STEPS - 1:
            print(f"step {step:3d}  negative log evidence {nll:9.3f}")
    return trace


def response(x):
    return 3.0 + torch.sin(5 * x[:, 0]) + 0.7 * x[:, 1] ** 2


if __name__ == "__main__":
    x = torch.rand(110, 3, dtype=torch.float64) * 2 - 1
    y = response(x) + 0.1 * torch.randn(110, dtype=torch.float64)
    gp = GaussianProcess(x, y)
    trace = fit(gp)
    new = torch.rand(200, 3, dtype=torch.float64) * 2 - 1
    mean, variance = gp.predict(new)
    rmse = (mean - response(new)).pow(2).mean().sqrt().item()
    print("length scales", [round(v, 2) for v in gp.kernel.log_scale.exp().tolist()],
          "noise", round(gp.kernel.log_noise.exp().item(), 3), "mean", round(gp.mean.item(), 2))
    print(f"rmse {rmse:.4f}, largest predictive deviation {variance.max().sqrt().item():.3f}")
