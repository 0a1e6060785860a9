"""Recover the depth-dependent dispersivity of a brine column from tracer profiles.

The column is described by steady 1-D advection-dispersion-decay,
    v dc/dz - d/dz( k(z) dc/dz ) + r c = s(z),
discretised with upwind finite volumes. k(z) is a small MLP; the linear system is solved with the
Thomas algorithm in numpy, and wrapped as an autograd function so that the MLP can be trained through it.
"""
import argparse

import numpy as np
import torch
import torch.nn as nn


def thomas(lower, diag, upper, rhs):
    """Solve a tridiagonal system for several right-hand sides. rhs: (batch, n)."""
    n = diag.shape[0]
    c = np.empty(n - 1)
    d = np.empty_like(rhs)
    c[0] = upper[0] / diag[0]
    d[:, 0] = rhs[:, 0] / diag[0]
    for i in range(1, n):
        m = diag[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / m
        d[:, i] = (rhs[:, i] - lower[i - 1] * d[:, i - 1]) / m
    x = np.empty_like(rhs)
    x[:, -1] = d[:, -1]
    for i in range(n - 2, -1, -1):
        x[:, i] = d[:, i] - c[i] * x[:, i + 1]
    return x


class TridiagSolve(torch.autograd.Function):
    """x = A^{-1} rhs with A given by its three bands."""

    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        x = torch.from_numpy(thomas(lower.numpy(), diag.numpy(), upper.numpy(), rhs.numpy()))
        ctx.save_for_backward(lower, diag, upper, x)
        return x

    @staticmethod
    def backward(ctx, grad):
        lower, diag, upper, x = ctx.saved_tensors
        lam = torch.from_numpy(thomas(lower.numpy(), diag.numpy(), upper.numpy(), grad.contiguous().numpy()))
        g_diag = -(lam * x).sum(0)
        g_lower = -(lam[:, 1:] * x[:, :-1]).sum(0)
        g_upper = -(lam[:, :-1] * x[:, 1:]).sum(0)
        return g_lower, g_diag, g_upper, lam


class Column:
    def __init__(self, cells, velocity, decay):
        self.dz = 1.0 / cells
        self.v, self.r = velocity, decay
        self.centres = (torch.arange(cells, dtype=torch.float64) + 0.5) * self.dz
        self.faces = torch.arange(1, cells, dtype=torch.float64) * self.dz

    def solve(self, k_face, source):
        cond = k_face / self.dz**2
        adv = self.v / self.dz
        lower = -cond - adv
        upper = -cond
        pad = cond.new_zeros(1)
        diag = torch.cat([pad, cond]) + torch.cat([cond, pad]) + adv + self.r
        return TridiagSolve.apply(lower, diag, upper, source)


class Dispersivity(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, z):
        return 0.005 + 0.1 * nn.functional.softplus(self.net(2 * z[:, None] - 1)).squeeze(1)


def main(args):
    torch.manual_seed(args.seed)
    column = Column(args.cells, args.velocity, decay=0.6)
    k_true = 0.04 + 0.12 * torch.exp(-((column.faces - 0.55) / 0.15) ** 2)
    where = torch.linspace(0.1, 0.9, args.tracers, dtype=torch.float64)
    source = torch.exp(-((column.centres[None] - where[:, None]) / 0.05) ** 2)
    clean = column.solve(k_true, source)
    observed = clean + 0.0005 * torch.randn_like(clean)

    model = Dispersivity().double()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for it in range(args.steps):
        opt.zero_grad()
        k = model(column.faces)
        loss = ((column.solve(k, source) - observed) ** 2).mean()
        loss.backward()
        opt.step()
        if it % 50 == 0 or it == args.steps - 1:
            err = ((k - k_true).norm() / k_true.norm()).item()
            print(f"{it:4d}  misfit {loss.item():.3e}  k error {err:.3f}")
    return model, err, loss.item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--cells", type=int, default=48)
    ap.add_argument("--tracers", type=int, default=6)
    ap.add_argument("--velocity", type=float, default=0.5)
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--lr", type=float, default=0.01)
    ap.add_argument("--seed", type=int, default=0)
    model, k_error, misfit = main(ap.parse_args([]))
