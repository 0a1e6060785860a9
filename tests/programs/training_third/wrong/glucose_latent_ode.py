import torch
import torch.nn as nn
import torch.nn.functional as F


def rk4(field, z, dt):
    k1 = field(z)
    k2 = field(z + 0.5 * dt * k1)
    k3 = field(z + 0.5 * dt * k2)
    k4 = field(z + dt * k3)
    return z + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class OdeSolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z0, field, steps, dt):
        path = [z0]
        for _ in range(steps):
            path.append(rk4(field, path[-1], dt))
        ctx.field, ctx.dt = field, dt
        ctx.save_for_backward(*path)
        return torch.stack(path[1:], dim=1)

    @staticmethod
    def backward(ctx, grad_path):
        path = ctx.saved_tensors
        adjoint = torch.zeros_like(path[0])
        for k in reversed(range(grad_path.shape[1])):
            adjoint = adjoint + grad_path[:, k]
            with torch.enable_grad():
                z = path[k].detach().requires_grad_()
                z_next = rk4(ctx.field, z, ctx.dt)
            (adjoint,) = torch.autograd.grad(z_next, z, adjoint)
        return adjoint, None, None, None


class Dynamics(nn.Module):
    def __init__(self, dim, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, width), nn.Tanh(), nn.Linear(width, dim))

    def forward(self, z):
        return self.net(z) - 0.1 * z


class LatentODE(nn.Module):
    def __init__(self, n_obs, latent=6, dt=0.2):
        super().__init__()
        self.encoder = nn.GRU(n_obs, latent, batch_first=True)
        self.dynamics = Dynamics(latent)
        self.decoder = nn.Linear(latent, n_obs)
        self.dt = dt

    def forward(self, history, horizon):
        z0 = self.encoder(history)[1][0]
        path = OdeSolve.apply(z0, self.dynamics, horizon, self.dt)
        return self.decoder(path)


def make_patients(n=32, length=24):
    t = 0.25 * torch.arange(length)
    phase, rate = 6.3 * torch.rand(n, 1), 0.8 + 0.3 * torch.rand(n, 1)
    glucose = torch.exp(-0.1 * t) * torch.cos(rate * t + phase)
    insulin = torch.exp(-0.1 * t) * torch.sin(rate * t + phase)
    return torch.stack([glucose, insulin], dim=-1)


def main(steps=60, history=12):
    torch.manual_seed(0)
    series = make_patients()
    past, future = series[:, :history], series[:, history:]
    model = LatentODE(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        loss = F.mse_loss(model(past, future.shape[1]), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 15 == 0:
            print(f"step {step} forecast mse {loss.item():.4f}")
    return model, past, future


if __name__ == "__main__":
    model, past, future = main()
