"""A latent-conditioned neural ODE for batch reactors.

Every run of the reactor has its own catalyst activity and feed ratio. An encoder reads the first samples of a run
and gives a condition vector; the dynamics network takes the concentrations and that vector. Gradients are
computed by a step-wise adjoint pass, which stores the states only and recomputes each step on the way back.
"""
import torch
from torch import nn

torch.manual_seed(21)

STEPS = 95
GRID = 8
SEEN = 4
DT = 0.35


def midpoint(func, x, dt):
    half = x + 0.5 * dt * func(x)
    return x + dt * func(half)


class AdjointSolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, x0, dt, steps, *params):
        states = [x0]
        for _ in range(steps):
            states.append(midpoint(func, states[-1], dt))
        path = torch.stack(states)
        ctx.func, ctx.dt, ctx.steps = func, dt, steps
        ctx.save_for_backward(path, *params)
        return path

    @staticmethod
    def backward(ctx, grad_path):
        path, *params = ctx.saved_tensors
        adjoint = grad_path[-1].clone()
        totals = [torch.zeros_like(p) for p in params]
        for k in range(ctx.steps - 1, -1, -1):
            with torch.enable_grad():
                x = path[k].detach().requires_grad_(True)
                y = midpoint(ctx.func, x, ctx.dt)
            grad_x, *grads = torch.autograd.grad(y, [x, *params], adjoint)
            adjoint = grad_x + grad_path[k]
            for total, g in zip(totals, grads):
                total.add_(g)
        return (None, adjoint, None, None, *totals)


def odeint(func, x0, dt, steps):
    return AdjointSolve.apply(func, x0, dt, steps, *func.parameters())


class Dynamics(nn.Module):
    def __init__(self, species=3, cond=4, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(species + cond, width), nn.Tanh(), nn.Linear(width, species))
        self.condition = None

    def forward(self, x):
        return self.net(torch.cat([x, self.condition], dim=-1))


class ReactorModel(nn.Module):
    def __init__(self, species=3, cond=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SEEN * species, 24), nn.Tanh(), nn.Linear(24, cond), nn.Tanh())
        self.dynamics = Dynamics(species, cond)

    def forward(self, observed):
        seen = observed[:SEEN].transpose(0, 1).flatten(1)
        self.dynamics.condition = self.encoder(seen)
        return odeint(self.dynamics, observed[0], DT, GRID)


def simulate(runs, fine=8):
    """A -> B -> C with activity and selectivity of each run, integrated on a finer grid."""
    activity = 0.3 + 1.5 * torch.rand(runs)
    second = 0.1 + 1.2 * torch.rand(runs)
    feed = 0.7 + 0.6 * torch.rand(runs)

    def rate(x):
        r1 = activity * x[:, 0] / (1 + 0.5 * x[:, 0])
        r2 = second * x[:, 1]
        return torch.stack([-r1, r1 - r2, r2], dim=1)

    x = torch.stack([feed, torch.zeros(runs), torch.zeros(runs)], dim=1)
    path = [x]
    for _ in range(GRID):
        for _ in range(fine):
            x = midpoint(rate, x, DT / fine)
        path.append(x)
    path = torch.stack(path)
    return path + 0.003 * torch.randn_like(path)


def train(model, data):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    losses = []
    for step in range(STEPS):
        rows = torch.randint(0, data.shape[1], (64,))
        batch = data[:, rows]
        loss = (model(batch) - batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 20 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  loss {loss.item():.5f}")
    return losses


if __name__ == "__main__":
    data, fresh = simulate(256), simulate(64)
    model = ReactorModel()
    losses = train(model, data)
    with torch.no_grad():
        error = (model(fresh) - fresh).pow(2).mean().sqrt().item()
    print(f"rms error on new runs: {error:.4f}")
