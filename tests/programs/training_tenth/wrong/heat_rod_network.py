import math

import torch
import torch.nn as nn

torch.manual_seed(13)
DIFFUSIVITY, END = 0.15, 1.0


class Rod(nn.Module):
    """Temperature u(t, x) on a rod of length one with cold ends, from a tanh network."""

    def __init__(self, width=40, depth=3):
        super().__init__()
        layers, size = [], 2
        for _ in range(depth):
            layers += [nn.Linear(size, width), nn.Tanh()]
            size = width
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, points):
        x = points[:, 1:2]
        return x * (1 - x) * self.net(2 * points - 1)


def exact(points):
    t, x = points[:, 0:1], points[:, 1:2]
    slow = torch.exp(-DIFFUSIVITY * math.pi ** 2 * t) * torch.sin(math.pi * x)
    fast = 0.4 * torch.exp(-9 * DIFFUSIVITY * math.pi ** 2 * t) * torch.sin(3 * math.pi * x)
    return slow + fast


def residual(model, points):
    points = points.requires_grad_()
    u = model(points)
    slopes = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
    u_t, u_x = slopes[:, 0:1], slopes[:, 1:2]
    u_xx = torch.autograd.grad(u_x.sum(), points, retain_graph=True)[0][:, 1:2]
    return u_t - DIFFUSIVITY * u_xx


class Meter:
    """Weighted sum of the loss terms, with a running level of each for the report."""

    def __init__(self, names, decay=0.98):
        self.level = {name: None for name in names}
        self.decay = decay

    def combine(self, losses, weights):
        total = 0.0
        for name, value in losses.items():
            seen = value.item()
            old = self.level[name]
            self.level[name] = seen if old is None else self.decay * old + (1 - self.decay) * seen
            total = total + weights[name] * value
        return total


def sample_interior(count):
    points = torch.rand(count, 2)
    points[:, 0] *= END
    return points


def sample_start(count):
    return torch.cat([torch.zeros(count, 1), torch.rand(count, 1)], dim=1)


def evaluate(model, count=41):
    t, x = torch.meshgrid(torch.linspace(0, END, count), torch.linspace(0, 1, count), indexing="ij")
    points = torch.stack([t.flatten(), x.flatten()], dim=1)
    with torch.no_grad():
        guess, truth = model(points), exact(points)
    return ((guess - truth).norm() / truth.norm()).item()


steps = 700
model = Rod()
meter = Meter(["equation", "start"])
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=2e-4)
for step in range(steps):
    start = sample_start(100)
    losses = {
        "equation": residual(model, sample_interior(256)).square().mean(),
        "start": (model(start) - exact(start)).square().mean(),
    }
    loss = meter.combine(losses, {"equation": 1.0, "start": 20.0})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

levels = "  ".join(f"{name} {value:.5f}" for name, value in meter.level.items())
print(f"{levels}  relative error {evaluate(model):.4f}")
