"""Neural ODE for a damped two-species reaction loop, trained with the continuous adjoint (constant memory)."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    n_traj: int = 48
    n_obs: int = 7
    t_max: float = 2.4
    substeps: int = 2
    hidden: int = 32
    lr: float = 1e-2
    epochs: int = 61
    seed: int = 3


class Rate(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, dim))

    def forward(self, t, z):
        return self.net(z)


def rk4(f, t0, t1, state, n):
    """Fixed-step RK4 on a tuple of tensors; works forwards and backwards in time."""
    h = (t1 - t0) / n
    t = t0
    for _ in range(n):
        k1 = f(t, state)
        k2 = f(t + h / 2, tuple(s + h / 2 * k for s, k in zip(state, k1)))
        k3 = f(t + h / 2, tuple(s + h / 2 * k for s, k in zip(state, k2)))
        k4 = f(t + h, tuple(s + h * k for s, k in zip(state, k3)))
        state = tuple(s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4))
        t = t + h
    return state


class AdjointSolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, z0, ts, n, *params):
        zs = [z0]
        for i in range(1, len(ts)):
            zs.append(rk4(lambda t, s: (func(t, s[0]),), ts[i - 1], ts[i], (zs[-1],), n)[0])
        zs = torch.stack(zs)
        ctx.func, ctx.ts, ctx.n = func, ts, n
        ctx.save_for_backward(zs, *params)
        return zs

    @staticmethod
    def backward(ctx, grad_zs):
        zs, *params = ctx.saved_tensors
        func, ts = ctx.func, ctx.ts

        def augmented(t, state):
            z, a = state[0].detach().requires_grad_(True), state[1]
            with torch.enable_grad():
                f = func(t, z)
                vjps = torch.autograd.grad(f, (z, *params), grad_outputs=-a)
            return (f.detach(), *vjps)

        adj = grad_zs[-1]
        grads = tuple(torch.zeros_like(p) for p in params)
        for i in range(len(ts) - 1, 0, -1):
            # restart from the stored state so that the backward solve does not drift
            state = rk4(augmented, ts[i], ts[i - 1], (zs[i], adj, *grads), ctx.n)
            adj, grads = state[1], state[2:]
        return (None, adj, None, None, *grads)


def odeint(func, z0, ts, n):
    return AdjointSolve.apply(func, z0, ts, n, *func.parameters())


def reaction(z):
    x, y = z[..., 0], z[..., 1]
    return torch.stack([-0.15 * x + 1.6 * torch.sin(y), -1.2 * x - 0.1 * y ** 3], dim=-1)


def make_data(cfg, g):
    ts = [cfg.t_max * i / (cfg.n_obs - 1) for i in range(cfg.n_obs)]
    z = torch.rand(2 * cfg.n_traj, 2, generator=g) * 3 - 1.5
    path = [z]
    for i in range(1, len(ts)):
        path.append(rk4(lambda t, s: (reaction(s[0]),), ts[i - 1], ts[i], (path[-1],), 20)[0])
    path = torch.stack(path)
    return ts, path[:, :cfg.n_traj], path[:, cfg.n_traj:]


cfg = Config()
torch.manual_seed(cfg.seed)
ts, train, test = make_data(cfg, torch.Generator().manual_seed(cfg.seed))
func = Rate(hidden=cfg.hidden)
opt = torch.optim.Adam(func.parameters(), lr=cfg.lr)
for epoch in range(cfg.epochs):
    noisy = train + 0.02 * torch.randn_like(train)
    loss = ((odeint(func, train[0], ts, cfg.substeps) - noisy) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 15 == 0 or epoch == cfg.epochs - 1:
        print(f"epoch {epoch:3d}  train mse {loss.item():.4f}")
with torch.no_grad():
    test_mse = ((odeint(func, test[0], ts, cfg.substeps) - test) ** 2).mean().item()
print(f"held-out trajectories: rmse {math.sqrt(test_mse):.4f}")
