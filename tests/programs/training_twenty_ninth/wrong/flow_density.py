"""A continuous normalizing flow (FFJORD style) fitted to a ring of blobs in the plane."""
import math

import torch
from torch import nn


def ring_of_blobs(count, blobs=5, radius=2.0, spread=0.3):
    angle = 2 * math.pi * torch.randint(0, blobs, (count,)) / blobs
    centre = radius * torch.stack([angle.cos(), angle.sin()], dim=1)
    return centre + spread * torch.randn(count, 2)


class Drift(nn.Module):
    """Velocity field f(z, t) of the ordinary differential equation."""

    def __init__(self, dim, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim + 1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, dim),
        )

    def forward(self, t, z):
        clock = torch.full_like(z[:, :1], t)
        return self.net(torch.cat([z, clock], dim=1))


class ContinuousFlow(nn.Module):
    """Carries data to a standard normal along the drift and tracks the change of log density."""

    def __init__(self, dim=2, width=32, steps=6):
        super().__init__()
        self.dim = dim
        self.steps = steps
        self.drift = Drift(dim, width)
        self.base = torch.distributions.Normal(0.0, 1.0)

    def velocity_and_trace(self, t, z, probe):
        """Hutchinson's estimate of the trace of df/dz, with one probe per sample."""
        velocity = self.drift(t, z)
        (pulled,) = torch.autograd.grad(velocity, z, grad_outputs=probe, retain_graph=True)
        return velocity, (pulled * probe).sum(dim=1)

    def encode(self, x):
        """Midpoint rule from t = 0 (data) to t = 1 (base)."""
        h = 1.0 / self.steps
        z = x.clone().requires_grad_(True)
        probe = torch.randint(0, 2, x.shape).to(x) * 2 - 1
        log_volume = torch.zeros(len(x))
        for k in range(self.steps):
            t = k * h
            middle = z + 0.5 * h * self.drift(t, z)
            velocity, trace = self.velocity_and_trace(t + 0.5 * h, middle, probe)
            z = z + h * velocity
            log_volume = log_volume + h * trace
        return z, log_volume

    def log_prob(self, x):
        z, log_volume = self.encode(x)
        return self.base.log_prob(z).sum(dim=1) + log_volume

    @torch.no_grad()
    def sample(self, count):
        h = 1.0 / self.steps
        z = torch.randn(count, self.dim)
        for k in reversed(range(self.steps)):
            t = (k + 1) * h
            middle = z - 0.5 * h * self.drift(t, z)
            z = z - h * self.drift(t - 0.5 * h, middle)
        return z


def held_out_nats(flow, x):
    return -flow.log_prob(x).mean().item()


def fit(flow, train, valid, steps, batch, lr):
    optimizer = torch.optim.Adam(flow.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=lr / 10)
    history = []
    for step in range(steps):
        rows = torch.randint(0, len(train), (batch,))
        loss = -flow.log_prob(train[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step % 30 == 0 or step == steps - 1:
            history.append(held_out_nats(flow, valid))
            print(f"step {step:3d}  train {loss.item():.3f}  held out {history[-1]:.3f} nats")
    return history


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    train, valid = ring_of_blobs(1000), ring_of_blobs(300)
    flow = ContinuousFlow()
    history = fit(flow, train, valid, steps=61, batch=128, lr=1e-2)
    drawn = flow.sample(500)
    print(f"data radius   {train.norm(dim=1).mean():.2f} +- {train.norm(dim=1).std():.2f}")
    print(f"sample radius {drawn.norm(dim=1).mean():.2f} +- {drawn.norm(dim=1).std():.2f}")
    return flow, valid, history


if __name__ == "__main__":
    flow, valid, history = main()
