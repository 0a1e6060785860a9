"""Physics-informed network for u'' = f on [0, 1] with u = 0 at both ends.
Collocation points are drawn where the residual is large, and each point's weight follows its own residual."""
import math

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def source(x):
    return -(math.pi**2) * torch.sin(math.pi * x) - 0.5 * (3 * math.pi) ** 2 * torch.sin(3 * math.pi * x)


def exact(x):
    return torch.sin(math.pi * x) + 0.5 * torch.sin(3 * math.pi * x)


net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def residual(x, differentiable):
    x = x.clone().requires_grad_(True)
    u = net(x)
    (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), x, create_graph=differentiable)
    return (ddu - source(x)) / 10.0


def draw_points(keep=96, pool=256):
    """Pick the points in proportion to the present residual; the choice itself is not differentiated."""
    candidates = torch.rand(pool, 1)
    scores = residual(candidates, differentiable=False).detach().abs().squeeze(1) + 1e-3
    chosen = torch.multinomial(scores, keep)
    inverse = (scores.mean() / scores[chosen]).unsqueeze(1)
    return candidates[chosen], inverse


optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
STEPS = 700
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
ends = torch.tensor([[0.0], [1.0]])
for step in range(STEPS):
    if step % 20 == 0:
        points, correction = draw_points()
    r = residual(points, differentiable=True)
    attention = (r.detach().abs() / r.detach().abs().max()).clamp(min=0.2)
    physics = (attention * correction * r**2).mean()
    boundary = net(ends).pow(2).mean()
    loss = physics + 10 * boundary
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 200 == 0:
        print(f"step {step}  physics {physics.item():.2e}  boundary {boundary.item():.2e}")

grid = torch.linspace(0, 1, 201).unsqueeze(1)
with torch.no_grad():
    gap = (net(grid) - exact(grid)).abs()
print(f"error: mean {gap.mean().item():.4f}  worst {gap.max().item():.4f}")
