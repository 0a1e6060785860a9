"""Neural ODE with the adjoint method (Chen et al. 2018) in small: fit the flow of a damped nonlinear oscillator."""
import torch
from torch import nn

torch.manual_seed(0)
HORIZON, SUBSTEPS, STEPS, BATCH = 1.0, 8, 180, 64


def rk4(func, state, t0, t1, n):
    """Fixed-step Runge-Kutta on a tuple of tensors; t1 may lie before t0."""
    h = (t1 - t0) / n

    def shift(s, k, c):
        return tuple(a + c * b for a, b in zip(s, k))

    t = t0
    for _ in range(n):
        k1 = func(t, state)
        k2 = func(t + h / 2, shift(state, k1, h / 2))
        k3 = func(t + h / 2, shift(state, k2, h / 2))
        k4 = func(t + h, shift(state, k3, h))
        state = tuple(s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4))
        t = t + h
    return state


class AdjointSolve(torch.autograd.Function):
    """Keeps only the end point; gradients come from an ODE that is solved backwards in time."""

    @staticmethod
    def forward(ctx, field, x0, *params):
        with torch.no_grad():
            (x1,) = rk4(lambda t, s: (field(t, s[0]),), (x0,), 0.0, HORIZON, SUBSTEPS)
        ctx.field = field
        ctx.save_for_backward(x1)
        ctx.params = params
        return x1

    @staticmethod
    def backward(ctx, grad_out):
        field, params = ctx.field, ctx.params
        (x1,) = ctx.saved_tensors

        def augmented(t, state):
            x, adjoint = state[0], state[1]
            with torch.enable_grad():
                x = x.detach().requires_grad_(True)
                dx = field(t, x)
                pulled = torch.autograd.grad(dx, (x, *params), -adjoint, allow_unused=True)
            parts = [torch.zeros_like(p) if g is None else g for p, g in zip((x, *params), pulled)]
            return (dx.detach(), *parts)

        state = (x1.detach(), grad_out, *(torch.zeros_like(p) for p in params))
        state = rk4(augmented, state, HORIZON, 0.0, SUBSTEPS)
        return (None, state[1], *state[2:])


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, t, x):
        return self.net(torch.cat([x, torch.full_like(x[:, :1], t)], dim=-1))


def true_field(t, x):
    return torch.stack([x[:, 1], -2.0 * torch.sin(x[:, 0]) - 0.3 * x[:, 1]], dim=-1)


def pairs(n):
    x0 = 3 * torch.rand(n, 2) - 1.5
    (x1,) = rk4(lambda t, s: (true_field(t, s[0]),), (x0,), 0.0, HORIZON, 20)
    return x0, x1


def main():
    field = Field()
    opt = torch.optim.Adam(field.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
    for step in range(STEPS):
        x0, x1 = pairs(BATCH)
        loss = (AdjointSolve.apply(field, x0, *field.parameters()) - x1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 45 == 0:
            print(f"step {step:4d}  loss {loss.item():.5f}")
    x0, x1 = pairs(500)
    with torch.no_grad():
        error = (AdjointSolve.apply(field, x0, *field.parameters()) - x1).pow(2).mean().item()
    print(f"test error {error:.5f}  (no motion: {(x0 - x1).pow(2).mean().item():.3f})")
    return field


if __name__ == "__main__":
    field = main()
