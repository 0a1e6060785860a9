import math

import torch
from torch import nn

torch.set_default_dtype(torch.float32)


def exact(x):
    return torch.sin(4 * math.pi * x) + 0.5 * x + 1.0


def source(x):
    return -(4 * math.pi) ** 2 * torch.sin(4 * math.pi * x)


class FourierNet(nn.Module):
    def __init__(self, width=40, frequencies=4):
        super().__init__()
        self.register_buffer("freq", math.pi * torch.arange(1, frequencies + 1).float())
        self.layers = nn.Sequential(
            nn.Linear(2 * frequencies + 1, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        phases = x * self.freq
        return self.layers(torch.cat([x, phases.sin(), phases.cos()], dim=-1))


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual_loss(model, x):
    x = x.requires_grad_()
    u_xx = derivative(derivative(model(x), x), x)
    return (u_xx - source(x)).pow(2).mean()


def boundary_loss(model):
    ends = torch.tensor([[0.0], [1.0]])
    return (model(ends) - exact(ends)).pow(2).mean()


class GradientBalancer:
    """Weights the boundary term such that its gradients are as large as those of the residual."""

    def __init__(self, model, momentum=0.9, ceiling=1e3):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.momentum, self.ceiling = momentum, ceiling
        self.weight = 1.0

    def magnitudes(self, loss):
        loss.backward(retain_graph=True)
        return torch.cat([p.grad.abs().flatten() for p in self.params if p.grad is not None])

    def update(self, residual, boundary):
        largest = self.magnitudes(residual).max()
        average = self.magnitudes(boundary).mean()
        target = min((largest / (average + 1e-8)).item(), self.ceiling)
        self.weight = self.momentum * self.weight + (1 - self.momentum) * target


def train(model, steps=1500, every=10, points=128):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    balancer = GradientBalancer(model)
    for step in range(steps):
        residual = residual_loss(model, torch.rand(points, 1))
        boundary = boundary_loss(model)
        optimizer.zero_grad()
        if step % every == 0:
            balancer.update(residual, boundary)
        loss = residual + balancer.weight * boundary
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 500 == 0:
            print(f"step {step}: residual {residual.item():.3f} boundary {boundary.item():.5f}")
    return balancer


@torch.no_grad()
def relative_error(model):
    grid = torch.linspace(0, 1, 400)[:, None]
    return ((model(grid) - exact(grid)).norm() / exact(grid).norm()).item()


torch.manual_seed(0)
model = FourierNet()
balancer = train(model)
error = relative_error(model)
print(f"boundary weight {balancer.weight:.1f}, relative error {error:.4f}")
