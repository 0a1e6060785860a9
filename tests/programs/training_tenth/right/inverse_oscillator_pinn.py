import math

import torch
from torch import nn

OMEGA, DAMPING = 4.0, 0.6


def exact(t):
    root = math.sqrt(OMEGA ** 2 - (DAMPING / 2) ** 2)
    return torch.exp(-DAMPING / 2 * t) * torch.cos(root * t)


class Displacement(nn.Module):
    """Network for u(t) with u(0) = 1 built in; the features are fixed, the output scale is not trained."""

    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("features", torch.linspace(0.5, 6.0, 8))
        self.net = nn.Sequential(nn.Linear(16, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.scale = nn.Parameter(torch.tensor(1.0), requires_grad=False)

    def forward(self, t):
        angles = t * self.features
        return 1.0 + self.scale * torch.tanh(t) * self.net(torch.cat([angles.sin(), angles.cos()], dim=-1))


class Physics(nn.Module):
    """Unknown coefficients of u'' + c u' + k u = 0, kept positive through their logarithms."""

    def __init__(self):
        super().__init__()
        self.log_c = nn.Parameter(torch.tensor(0.0))
        self.log_k = nn.Parameter(torch.tensor(2.0))

    def forward(self, u, u_t, u_tt):
        return (u_tt + self.log_c.exp() * u_t + self.log_k.exp() * u) / 10.0


def derivative(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


def flat_gradient(loss, params):
    grads = torch.autograd.grad(loss, params, retain_graph=True, allow_unused=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(grads, params)])


def write_gradient(vector, params):
    start = 0
    for p in params:
        p.grad = vector[start:start + p.numel()].view_as(p).clone()
        start += p.numel()


def without_conflict(first, second):
    """Gradient surgery: each gradient loses its part that points against the other one."""
    dot = torch.dot(first, second)
    if dot >= 0:
        return first + second
    return first - dot / second.square().sum() * second + second - dot / first.square().sum() * first


torch.manual_seed(0)
model, physics = Displacement(), Physics()
t_data = torch.linspace(0.0, 3.0, 25)[:, None]
u_data = exact(t_data) + 0.01 * torch.randn_like(t_data)
t_points = torch.linspace(0.0, 3.0, 80)[:, None].requires_grad_()
point_weight = nn.Parameter(torch.ones(80, 1))
shared = [p for p in model.parameters() if p.requires_grad] + list(physics.parameters())
optimizer = torch.optim.Adam([{"params": shared[:-2], "lr": 3e-3}, {"params": shared[-2:], "lr": 1e-2}])
ascent = torch.optim.SGD([point_weight], lr=0.05, maximize=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1500)
for step in range(1500):
    u = model(t_points)
    u_t = derivative(u, t_points)
    residual = physics(u, u_t, derivative(u_t, t_points))
    physics_loss = (point_weight.detach() * residual.square()).mean()
    data_loss = (model(t_data) - u_data).square().mean()
    gradient = without_conflict(flat_gradient(10.0 * data_loss, shared), flat_gradient(physics_loss, shared))
    write_gradient(gradient, shared)
    optimizer.step()
    schedule.step()
    ascent.zero_grad()
    (point_weight * residual.detach().square()).sum().backward()
    ascent.step()
    point_weight.data.clamp_(max=20.0)
    if step % 600 == 0:
        print(f"step {step}: data {data_loss.item():.5f} physics {physics_loss.item():.5f}")

with torch.no_grad():
    grid = torch.linspace(0.0, 3.0, 300)[:, None]
    error = ((model(grid) - exact(grid)).norm() / exact(grid).norm()).item()
print(f"c {physics.log_c.exp().item():.3f} k {physics.log_k.exp().item():.3f} relative error {error:.4f}")
