"""Neural ODE for a family of damped spirals, with constant-memory reverse sweep through the solver."""
import torch
import torch.nn as nn
import torch.nn.functional as F

DT = 0.1
STEPS = 24
BATCH = 32


class VectorField(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, z):
        return self.net(z)


def midpoint(field, z, dt):
    """One step of the explicit midpoint rule."""
    half = z + 0.5 * dt * field(z)
    return z + dt * field(half)


class ReverseSweep(torch.autograd.Function):
    """Integrates forward without a graph; the backward recomputes each step from its stored state."""

    @staticmethod
    def forward(ctx, z0, field, dt, steps, *params):
        states = [z0]
        for _ in range(steps):
            states.append(midpoint(field, states[-1], dt))
        path = torch.stack(states)
        ctx.save_for_backward(path, *params)
        ctx.field, ctx.dt, ctx.steps = field, dt, steps
        return path

    @staticmethod
    def backward(ctx, grad_path):
        path, *params = ctx.saved_tensors
        adjoint = grad_path[-1]
        sums = [torch.zeros_like(p) for p in params]
        for k in reversed(range(ctx.steps)):
            with torch.enable_grad():
                z = path[k].detach().requires_grad_()
                nxt = midpoint(ctx.field, z, ctx.dt)
            dz, *dp = torch.autograd.grad(nxt, (z, *params), adjoint)
            adjoint = dz
            for total, piece in zip(sums, dp):
                total.add_(piece)
        return (adjoint, None, None, None, *sums)


class LatentStart(nn.Module):
    """Small correction of the measured initial point."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Linear(2, 2)
        nn.init.normal_(self.shift.weight, std=0.01)
        nn.init.zeros_(self.shift.bias)

    def forward(self, x):
        return x + self.shift(x)


class SpiralModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = LatentStart()
        self.field = VectorField()

    def forward(self, x0, steps=STEPS):
        z0 = self.start(x0)
        return ReverseSweep.apply(z0, self.field, DT, steps, *self.field.parameters())


def true_field(z):
    a = torch.tensor([[-0.15, 2.0], [-2.0, -0.15]])
    return (z ** 3) @ a.T


def make_paths(count, steps=STEPS):
    angle = torch.rand(count) * 6.2832
    radius = 0.8 + 0.5 * torch.rand(count)
    z = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    states = [z]
    for _ in range(steps):
        for _ in range(5):
            z = midpoint(true_field, z, DT / 5)
        states.append(z)
    return torch.stack(states)


def main(epochs=90):
    torch.manual_seed(11)
    train = make_paths(128)
    test = make_paths(64)
    model = SpiralModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        pick = torch.randperm(train.shape[1])[:BATCH]
        target = train[:, pick]
        path = model(target[0])
        loss = F.mse_loss(path, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 30 == 29:
            print(f"epoch {epoch + 1:4d}  train mse {loss.item():.5f}")
    with torch.no_grad():
        error = (model(test[0]) - test).pow(2).mean(dim=(1, 2))
    print("test mse at quarter points:", [round(error[k].item(), 5) for k in range(0, STEPS + 1, 6)])
    print(f"test mse over the path: {error.mean().item():.5f}")
    return model, train, error.mean().item()


if __name__ == "__main__":
    trained, paths, test_error = main()
