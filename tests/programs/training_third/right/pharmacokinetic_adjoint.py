import torch
import torch.nn as nn
import torch.nn.functional as F


def midpoint(field, z, dt):
    return z + dt * field(z + 0.5 * dt * field(z))


class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, field, dt, steps, z, *weights):
        states = [z.detach()]
        for _ in range(steps):
            states.append(midpoint(field, states[-1], dt))
        ctx.field, ctx.dt, ctx.weights = field, dt, weights
        ctx.save_for_backward(*states)
        return torch.stack(states[1:], dim=1)

    @staticmethod
    def backward(ctx, grad_states):
        states = ctx.saved_tensors
        adjoint = torch.zeros_like(states[0])
        sums = [torch.zeros_like(w) for w in ctx.weights]
        for k in range(len(states) - 2, -1, -1):
            adjoint = adjoint + grad_states[:, k]
            with torch.enable_grad():
                z = states[k].detach().requires_grad_()
                following = midpoint(ctx.field, z, ctx.dt)
            adjoint, *parts = torch.autograd.grad(following, (z, *ctx.weights), adjoint)
            sums = [s + p for s, p in zip(sums, parts)]
        return None, None, None, adjoint, *sums


class Elimination(nn.Module):
    def __init__(self, compartments=3, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(compartments, width), nn.Softplus(), nn.Linear(width, compartments))

    def forward(self, z):
        return self.net(z) - z


class DoseModel(nn.Module):
    def __init__(self, n_cov=4, compartments=3, dt=0.25):
        super().__init__()
        self.initial = nn.Linear(n_cov, compartments)
        self.field = Elimination(compartments)
        self.readout = nn.Linear(compartments, 1)
        self.dt = dt

    def forward(self, cov, steps):
        states = Solve.apply(self.field, self.dt, steps, self.initial(cov), *self.field.parameters())
        return self.readout(states).squeeze(-1)


def make_patients(n=48, steps=10):
    cov = torch.rand(n, 4)
    t = 0.25 * torch.arange(1, steps + 1)
    rate = 0.5 + cov[:, :1]
    return cov, 2 * cov[:, 1:2] * (torch.exp(-rate * t) - torch.exp(-3 * rate * t))


def main(steps=60):
    torch.manual_seed(0)
    cov, curve = make_patients()
    model = DoseModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        idx = torch.randperm(len(cov))[:24]
        loss = F.mse_loss(model(cov[idx], curve.shape[1]), curve[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step} loss {loss.item():.5f}")
    return model


if __name__ == "__main__":
    model = main()
