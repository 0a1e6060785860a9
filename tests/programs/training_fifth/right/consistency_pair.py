"""Consistency distillation of a 1-D diffusion model: the target network is a lagging average of the student."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
GRID = torch.linspace(0.02, 1.0, 17)


def data(n):
    return (torch.randint(2, (n, 1)) * 2.0 - 1.0) + 0.15 * torch.randn(n, 1)


def alpha_sigma(t):
    return torch.cos(t * math.pi / 2), torch.sin(t * math.pi / 2)


def network():
    return nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))


def clean(net, x, t):
    """Skip connection: at the smallest time the prediction is the input itself."""
    a, s = alpha_sigma(t)
    gate = ((t - GRID[0]) / 0.2).clamp(max=1.0)
    return (1 - gate) * x + gate * net(torch.cat([x, a, s], -1))


def ddim(net, x, t, u):
    x0 = clean(net, x, t)
    a, s = alpha_sigma(t)
    b, r = alpha_sigma(u)
    return b * x0 + r * (x - a * x0) / s


teacher = network()
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for step in range(500):
    x = data(256)
    t = GRID[0] + (1 - GRID[0]) * torch.rand(256, 1)
    a, s = alpha_sigma(t)
    loss = F.mse_loss(clean(teacher, a * x + s * torch.randn_like(x), t), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"teacher denoising loss {loss.item():.4f}")
teacher.requires_grad_(False)

student = copy.deepcopy(teacher).requires_grad_(True)
target = copy.deepcopy(teacher)  # frozen; moved only by the average below
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600, 1e-4)
for step in range(1, 601):
    x = data(256)
    n = torch.randint(1, len(GRID), (256, 1))
    t, u = GRID[n], GRID[n - 1]
    a, s = alpha_sigma(t)
    noisy = a * x + s * torch.randn_like(x)
    with torch.no_grad():
        goal = clean(target, ddim(teacher, noisy, t, u), u)
    loss = F.mse_loss(clean(student, noisy, t), goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    annealing.step()
    with torch.no_grad():
        for p, q in zip(target.parameters(), student.parameters()):
            p.mul_(0.9).add_(q, alpha=0.1)
    if step % 200 == 0:
        with torch.no_grad():
            start = torch.randn(2000, 1)
            ones = torch.ones_like(start)
            once, before = clean(student, start, ones), clean(teacher, start, ones)
        real = data(2000).sort(0).values
        far = [(y.sort(0).values - real).abs().mean().item() for y in (once, before)]
        print(f"step {step}  loss {loss.item():.5f}  one-step Wasserstein: student {far[0]:.3f}, teacher {far[1]:.3f}")
