"""Neural ODE fitted to noisy spirals; gradients come from the continuous adjoint, so memory does not grow with steps."""
import torch
from torch import nn

torch.manual_seed(17)

DT = 0.1
SUBSTEPS = 2
N_POINTS = 8
BATCH = 32
STEPS = 100


def true_field(y):
    matrix = torch.tensor([[-0.15, 1.6], [-1.6, -0.15]])
    return y.pow(3).clamp(-2, 2) @ matrix


class Field(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, y):
        return self.net(y.pow(3))


def rk4(f, y, h):
    k1 = f(y)
    k2 = f(y + 0.5 * h * k1)
    k3 = f(y + 0.5 * h * k2)
    k4 = f(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def integrate(f, y):
    for _ in range(SUBSTEPS):
        y = rk4(f, y, DT / SUBSTEPS)
    return y


class AdjointSolve(torch.autograd.Function):
    """y0 -> y(DT), y(2 DT), ...; the parameters are passed so that autograd delivers their gradients."""

    @staticmethod
    def forward(ctx, field, y0, *params):
        with torch.no_grad():
            path = [y0]
            for _ in range(N_POINTS):
                path.append(integrate(field, path[-1]))
        path = torch.stack(path)
        ctx.field = field
        ctx.save_for_backward(path)
        return path[1:]

    @staticmethod
    def backward(ctx, grad_path):
        field, (path,) = ctx.field, ctx.saved_tensors
        params = tuple(field.parameters())
        sizes = [p.numel() for p in params]
        batch = path.shape[1]

        def dynamics(z):
            # reversed time: state, adjoint and parameter gradients move together
            y, a = z[:batch * 2].view(batch, 2), z[batch * 2:batch * 4].view(batch, 2)
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                dy = field(y)
                gy, *gp = torch.autograd.grad(dy, (y, *params), a)
            return torch.cat([-dy.detach().flatten(), gy.flatten(), *(g.flatten() for g in gp)])

        a, g = torch.zeros_like(path[0]), path.new_zeros(sum(sizes))
        for k in range(N_POINTS, 0, -1):
            a = a + grad_path[k - 1]
            z = integrate(dynamics, torch.cat([path[k].flatten(), a.flatten(), g]))
            a, g = z[batch * 2:batch * 4].view(batch, 2), z[batch * 4:]
        grads = [part.view_as(p) for part, p in zip(g.split(sizes), params)]
        return None, a, *grads


def solve(field, y0):
    return AdjointSolve.apply(field, y0, *field.parameters())


def trajectories(n):
    y = torch.rand(n, 2) * 2.4 - 1.2
    path = [y]
    for _ in range(N_POINTS):
        path.append(integrate(true_field, path[-1]))
    return y, torch.stack(path[1:])


def main():
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    for step in range(STEPS):
        y0, target = trajectories(BATCH)
        loss = (solve(field, y0) - target - 0.02 * torch.randn_like(target)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    y0, target = trajectories(256)
    error = (solve(field, y0) - target).abs().mean().item()
    print(f"test error {error:.4f}  (staying put: {(y0 - target).abs().mean().item():.4f})")


if __name__ == "__main__":
    main()
