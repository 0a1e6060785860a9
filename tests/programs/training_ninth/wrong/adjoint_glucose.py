"""Latent ODE for glucose curves after a meal; memory stays flat by integrating the adjoint state backwards."""
import torch
from torch import nn


class Rate(nn.Module):
    def __init__(self, dim, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, width), nn.Tanh(), nn.Linear(width, dim))

    def forward(self, t, z):
        return self.net(torch.cat([z, t.expand(len(z), 1)], dim=1))


def rk4(f, t, dt, z):
    k1 = f(t, z)
    k2 = f(t + dt / 2, z + dt / 2 * k1)
    k3 = f(t + dt / 2, z + dt / 2 * k2)
    k4 = f(t + dt, z + dt * k3)
    return z + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class Integrate(torch.autograd.Function):
    """Solution at the requested times; the backward pass replays one interval at a time."""

    @staticmethod
    def forward(ctx, z0, times, f):
        path = [z0]
        for i in range(len(times) - 1):
            path.append(rk4(f, times[i], times[i + 1] - times[i], path[-1]))
        path = torch.stack(path)
        ctx.f = f
        ctx.save_for_backward(path, times)
        return path

    @staticmethod
    def backward(ctx, grad_path):
        path, times = ctx.saved_tensors
        adjoint = grad_path[-1]
        for i in reversed(range(len(times) - 1)):
            with torch.enable_grad():
                z = path[i].detach().requires_grad_()
                z_next = rk4(ctx.f, times[i], times[i + 1] - times[i], z)
            (back,) = torch.autograd.grad(z_next, z, adjoint)
            adjoint = back + grad_path[i]
        return adjoint, None, None


class GlucoseModel(nn.Module):
    def __init__(self, covariates=5, dim=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(covariates, 32), nn.ReLU(), nn.Linear(32, dim))
        self.rate = Rate(dim)
        self.decoder = nn.Linear(dim, 1)

    def forward(self, covariates, times):
        path = Integrate.apply(self.encoder(covariates), times, self.rate)
        return self.decoder(path).squeeze(-1).T


def patients(n, times, gen):
    c = torch.rand(n, 5, generator=gen)
    carbs, insulin, delay, base, weight = (c[:, i:i + 1] for i in range(5))
    t = times[None] - 0.3 * delay
    rise = 3 * carbs / (0.6 + weight) * torch.relu(t) * torch.exp(-(1.5 + 3 * insulin) * torch.relu(t))
    dip = 0.4 * insulin * torch.sin(3 * t) * (t > 0)
    y = 0.5 * base + rise - dip
    return c, y + 0.02 * torch.randn(y.shape, generator=gen)


def main(epochs=40, batch=64):
    torch.manual_seed(12)
    gen = torch.Generator().manual_seed(12)
    times = torch.linspace(0, 2, 16)
    train, test = patients(512, times, gen), patients(200, times, gen)
    model = GlucoseModel()
    initial = {k: v.clone() for k, v in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)
    for epoch in range(epochs):
        total = 0.0
        for idx in torch.randperm(512, generator=gen).split(batch):
            loss = (model(train[0][idx], times) - train[1][idx]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(idx) / 512
        scheduler.step()
        if epoch % 8 == 0:
            print(f"{epoch:3d}  mse {total:.4f}  lr {scheduler.get_last_lr()[0]:.4f}")
    with torch.no_grad():
        rmse = (model(test[0], times) - test[1]).pow(2).mean().sqrt().item()
    return model, initial, rmse


if __name__ == "__main__":
    model, initial, rmse = main()
    print(f"test rmse {rmse:.4f}")
