"""Neural ODE for the thickness of a chain of ice cells, trained with the continuous adjoint (Chen et al., 2018)."""
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    cells: int = 6
    glaciers: int = 96
    years: float = 2.0
    observations: int = 5
    substeps: int = 6
    epochs: int = 14


def rk4(f, y, t0, t1, n):
    h, t = (t1 - t0) / n, t0
    for _ in range(n):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y, t = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), t + h
    return y


class AdjointSolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dynamics, times, n, y0, *params):
        with torch.no_grad():
            states = [y0]
            for t0, t1 in zip(times[:-1], times[1:]):
                states.append(rk4(dynamics, states[-1], t0, t1, n))
        ctx.dynamics, ctx.times, ctx.n, ctx.params, ctx.states = dynamics, times, n, params, states
        return torch.stack(states)

    @staticmethod
    def backward(ctx, grad):
        states, params = ctx.states, ctx.params
        shape, size = states[0].shape, states[0].numel()

        def augmented(t, z):
            y, a = z[:size].view(shape), z[size:2 * size].view(shape)
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                dy = ctx.dynamics(t, y)
                gy, *gp = torch.autograd.grad(dy, (y, *params), -a)
            return torch.cat([dy.detach().flatten(), gy.flatten()] + [g.flatten() for g in gp])

        a = grad[-1]
        total = torch.zeros(sum(p.numel() for p in params))
        for i in range(len(states) - 1, 0, -1):
            z = rk4(augmented, torch.cat([states[i].flatten(), a.flatten(), total]), ctx.times[i], ctx.times[i - 1], ctx.n)
            a = z[size:2 * size].view(shape) + grad[i - 1]
            total = z[2 * size:]
        pieces = zip(total.split([p.numel() for p in params]), params)
        return (None, None, None, a, *(g.view_as(p) for g, p in pieces))


class IceFlow(nn.Module):
    def __init__(self, cells, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cells + 1, width), nn.Tanh(), nn.Linear(width, cells))

    def forward(self, t, h):
        return self.net(torch.cat([h, torch.full_like(h[:, :1], t)], dim=1))

    def integrate(self, h0, times, n):
        return AdjointSolve.apply(self, times, n, h0, *self.parameters())


def physics(t, h):
    """Diffusive ice flow down the chain, accumulation above, melt below."""
    flux = h[:, :-1] ** 2 * (0.5 + h[:, :-1] - h[:, 1:]) * 0.6
    balance = torch.linspace(0.4, -0.4, h.shape[1])
    return nn.functional.pad(flux, (1, 0)) - nn.functional.pad(flux, (0, 1)) + balance * (h > 0.05)


def main():
    cfg = Config()
    torch.manual_seed(14)
    times = torch.linspace(0, cfg.years, cfg.observations + 1).tolist()
    h0 = 0.5 + torch.rand(2 * cfg.glaciers, cfg.cells)
    truth = [h0]
    for t0, t1 in zip(times[:-1], times[1:]):
        truth.append(rk4(physics, truth[-1], t0, t1, 20))
    truth = torch.stack(truth)
    train, test = truth.split(cfg.glaciers, dim=1)
    train = train + 0.01 * torch.randn(train.shape)

    flow = IceFlow(cfg.cells)
    optimizer = torch.optim.Adam(flow.parameters(), lr=8e-3)
    for epoch in range(cfg.epochs):
        for idx in torch.randperm(cfg.glaciers).split(24):
            path = flow.integrate(train[0, idx], times, cfg.substeps)
            loss = (path[1:] - train[1:, idx]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 1:
            with torch.no_grad():
                rmse = (flow.integrate(test[0], times, cfg.substeps) - test)[1:].pow(2).mean().sqrt().item()
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.5f}  test rmse {rmse:.4f}")
    return flow, rmse


if __name__ == "__main__":
    main()
