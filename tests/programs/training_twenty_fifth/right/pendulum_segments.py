"""Neural ODE on a damped pendulum. The RK4 roll-out is cut into segments; only the state at the segment borders is
kept in the forward pass, and each segment is integrated again when its gradient is needed."""
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Setup:
    dt: float = 0.1
    segment: int = 6
    segments: int = 4
    hidden: int = 32
    steps: int = 120
    batch: int = 32
    lr: float = 0.006
    seed: int = 4


def rk4(f, z, dt):
    a = f(z)
    b = f(z + 0.5 * dt * a)
    c = f(z + 0.5 * dt * b)
    d = f(z + dt * c)
    return z + dt / 6 * (a + 2 * b + 2 * c + d)


def integrate(f, z, dt, n):
    out = []
    for _ in range(n):
        z = rk4(f, z, dt)
        out.append(z)
    return torch.stack(out)


class Segment(torch.autograd.Function):
    """n steps from z; nothing but z is stored."""

    @staticmethod
    def forward(ctx, f, dt, n, z, *params):
        ctx.f, ctx.dt, ctx.n = f, dt, n
        ctx.save_for_backward(z)
        with torch.no_grad():
            return integrate(f, z, dt, n)

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        with torch.enable_grad():
            z = z.detach().requires_grad_()
            params = [p for p in ctx.f.parameters()]
            path = integrate(ctx.f, z, ctx.dt, ctx.n)
            grads = torch.autograd.grad(path, [z] + params, grad, allow_unused=True)
        return (None, None, None, *grads)


class Field(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, z):
        q, p = z[..., :1], z[..., 1:]
        return torch.cat([p, self.net(torch.cat([q, p], -1))], -1)


def rollout(field, z, s):
    pieces = []
    for _ in range(s.segments):
        piece = Segment.apply(field, s.dt, s.segment, z, *field.parameters())
        pieces.append(piece)
        z = piece[-1]
    return torch.cat(pieces)


def truth(z, s):
    def f(z):
        q, p = z[..., :1], z[..., 1:]
        return torch.cat([p, -1.5 * torch.sin(q) - 0.15 * p], -1)

    return integrate(f, z, s.dt, s.segment * s.segments)


def main(s):
    torch.manual_seed(s.seed)
    starts = 0.8 * torch.randn(256, 2)
    paths = truth(starts, s) + 0.01 * torch.randn(s.segment * s.segments, 256, 2)
    test = 0.8 * torch.randn(64, 2)
    field = Field(s.hidden)
    opt = torch.optim.Adam(field.parameters(), lr=s.lr)
    for step in range(s.steps + 1):
        idx = torch.randint(0, 256, (s.batch,))
        loss = (rollout(field, starts[idx], s) - paths[:, idx]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            with torch.no_grad():
                err = (rollout(field, test, s) - truth(test, s)).pow(2).mean().sqrt().item()
            print(f"step {step:3d}  loss {loss.item():.4f}  test rmse {err:.3f}")
    return field, err


if __name__ == "__main__":
    field, err = main(Setup())
