"""Kriging of a terrain with inducing points (the collapsed bound of Titsias, 2009).

Kernel scales, noise and the places of the inducing points are fitted together.
"""
import math

import torch
from torch import nn

torch.manual_seed(8)

SITES = 300
INDUCING = 14
STEPS = 110
JITTER = 1e-4


def terrain(x):
    """A plain in the west, rough ground in the east."""
    rough = torch.sigmoid(12 * (x[:, 0] - 0.6))
    return 0.4 * torch.sin(2 * x[:, 1]) + rough * torch.sin(9 * x[:, 0]) * torch.cos(7 * x[:, 1])


class SparseGP(nn.Module):
    def __init__(self, count, dims):
        super().__init__()
        self.log_scale = nn.Parameter(torch.full((dims,), math.log(0.3)))
        self.log_amplitude = nn.Parameter(torch.zeros(()))
        self.log_noise = nn.Parameter(torch.tensor(math.log(0.2)))
        self.sites = nn.Parameter(torch.rand(count, dims))

    def place(self, x, rounds=3):
        """Put the inducing points at the centres of a few rounds of k-means."""
        centers = x[torch.randperm(len(x))[: len(self.sites)]].clone()
        for _ in range(rounds):
            owner = torch.cdist(x, centers).argmin(dim=1)
            for k in range(len(centers)):
                if (owner == k).any():
                    centers[k] = x[owner == k].mean(dim=0)
        self.sites = nn.Parameter(centers)

    def kernel(self, a, b):
        scale = self.log_scale.exp()
        gap = (a / scale).unsqueeze(1) - (b / scale).unsqueeze(0)
        return (2 * self.log_amplitude).exp() * torch.exp(-0.5 * gap.pow(2).sum(dim=-1))

    def factors(self, x):
        noise = self.log_noise.exp()
        kuu = self.kernel(self.sites, self.sites) + JITTER * torch.eye(len(self.sites))
        chol = torch.linalg.cholesky(kuu)
        a = torch.linalg.solve_triangular(chol, self.kernel(self.sites, x), upper=False) / noise
        b = torch.linalg.cholesky(torch.eye(len(a)) + a @ a.T)
        return noise, chol, a, b

    def bound(self, x, y):
        noise, _, a, b = self.factors(x)
        c = torch.linalg.solve_triangular(b, (a @ y).unsqueeze(1), upper=False) / noise
        n = len(x)
        trace = n * (2 * self.log_amplitude).exp() / noise ** 2 - a.pow(2).sum()
        return (-0.5 * n * math.log(2 * math.pi) - b.diagonal().log().sum() - n * self.log_noise
                - 0.5 * y.pow(2).sum() / noise ** 2 + 0.5 * c.pow(2).sum() - 0.5 * trace)

    @torch.no_grad()
    def predict(self, x, y, new):
        noise, chol, a, b = self.factors(x)
        c = torch.linalg.solve_triangular(b, (a @ y).unsqueeze(1), upper=False) / noise
        w = torch.linalg.solve_triangular(chol, self.kernel(self.sites, new), upper=False)
        return (torch.linalg.solve_triangular(b, w, upper=False).T @ c).squeeze(1)


class Fitter:
    def __init__(self, model, lr=0.03):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def fit(self, x, y, steps):
        self.model.place(x)
        trace = []
        for step in range(steps):
            self.optimizer.zero_grad()
            loss = -self.model.bound(x, y) / len(x)
            loss.backward()
            self.optimizer.step()
            trace.append(loss.item())
            if step % 30 == 0 or step == steps - 1:
                print(f"step {step:4d}  negative bound per site {loss.item():.4f}")
        return trace


if __name__ == "__main__":
    x = torch.rand(SITES, 2)
    y = terrain(x) + 0.05 * torch.randn(SITES)
    x_new = torch.rand(400, 2)
    gp = SparseGP(INDUCING, dims=2)
    fitter = Fitter(gp)
    trace = fitter.fit(x, y, STEPS)
    rmse = (gp.predict(x, y, x_new) - terrain(x_new)).pow(2).mean().sqrt().item()
    print("length scales", [round(v, 3) for v in gp.log_scale.exp().tolist()], "noise", round(gp.log_noise.exp().item(), 3))
    print(f"rmse at new sites {rmse:.4f}")
