"""A physics-informed network for the heat equation with causal weights (Wang, Sankaran and Perdikaris, 2022).

    u_t = kappa u_xx on (0, 1) x (0, 1),  u(x, 0) = sin(pi x),  u = 0 at both ends
"""
import copy
import math

import torch
from torch import nn

torch.manual_seed(13)

KAPPA = 0.15
SLABS = 8
PER_SLAB = 24
STEPS = 160
EPSILON = 0.5


class FourierNet(nn.Module):
    def __init__(self, features=16, width=32):
        super().__init__()
        self.register_buffer("frequencies", 1.2 * torch.randn(2, features))
        self.body = nn.Sequential(
            nn.Linear(2 * features, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
        )
        self.head = nn.Linear(width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x, t):
        phase = torch.cat([x, t], dim=1) @ self.frequencies
        h = self.body(torch.cat([phase.sin(), phase.cos()], dim=1))
        return 4 * x * (1 - x) * self.head(h)


class MovingAverage:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


def derivative(u, x):
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def slab_losses(model, x, t):
    """Mean squared residual of each slab of time, from the first to the last."""
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = model(x, t)
    u_xx = derivative(derivative(u, x), x)
    residual = derivative(u, t) - KAPPA * u_xx
    return residual.pow(2).view(SLABS, PER_SLAB).mean(dim=1)


def causal_weights(losses):
    earlier = torch.cumsum(losses, dim=0) - losses
    return torch.exp(-EPSILON * earlier).detach()


def draw():
    x = torch.rand(SLABS * PER_SLAB, 1)
    start = torch.arange(SLABS).repeat_interleave(PER_SLAB).unsqueeze(1)
    t = (start + torch.rand(SLABS * PER_SLAB, 1)) / SLABS
    return x, t


def train(model):
    average = MovingAverage(model, decay=0.95)
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.987)
    history = []
    for step in range(STEPS):
        x0 = torch.rand(48, 1)
        initial = (model(x0, torch.zeros_like(x0)) - torch.sin(math.pi * x0)).pow(2).mean()
        losses = slab_losses(model, *draw())
        weights = causal_weights(losses)
        loss = (weights * losses).mean() + 20 * initial
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        average.update(model)
        history.append(loss.item())
        if step % 40 == 0 or step == STEPS - 1:
            print(f"step {step:3d}  loss {loss.item():.5f}  last weight {weights[-1].item():.3f}")
    return average.model, history


if __name__ == "__main__":
    net = FourierNet()
    averaged, history = train(net)
    ticks = torch.linspace(0, 1, 33)
    x, t = (g.reshape(-1, 1) for g in torch.meshgrid(ticks, ticks, indexing="ij"))
    exact = torch.exp(-math.pi ** 2 * KAPPA * t) * torch.sin(math.pi * x)
    error = ((averaged(x, t) - exact).norm() / exact.norm()).item()
    print(f"relative error of the averaged network {error:.4f}")
