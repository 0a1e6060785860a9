"""Fit a signed distance field to an oriented 2D point cloud with a SIREN (implicit geometric regularisation)."""
import math

import torch
import torch.nn as nn

torch.manual_seed(5)
N_SURFACE, N_SPACE, STEPS = 128, 128, 400


class SineLayer(nn.Module):
    def __init__(self, d_in, d_out, omega=8.0, first=False):
        super().__init__()
        self.omega = omega
        self.linear = nn.Linear(d_in, d_out)
        bound = 1.0 / d_in if first else math.sqrt(6.0 / d_in) / omega
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.omega * self.linear(x))


class SDF(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(SineLayer(2, width, first=True), SineLayer(width, width))
        self.out = nn.Linear(width, 1)

    def forward(self, xy):
        return self.out(self.body(xy)).squeeze(-1)


def sample_surface(n):
    """A circle of radius 0.5 with a little sensor noise along the normal."""
    angle = 2 * math.pi * torch.rand(n)
    normal = torch.stack([angle.cos(), angle.sin()], dim=1)
    return normal * (0.5 + 0.003 * torch.randn(n, 1)), normal


def spatial_gradient(field, points):
    points = points.requires_grad_(True)
    values = field(points)
    grad, = torch.autograd.grad(values, points, torch.ones_like(values), retain_graph=True)
    return values, grad


def sdf_losses(field, surface, normals, space):
    on_value, on_grad = spatial_gradient(field, surface)
    off_value, off_grad = spatial_gradient(field, space)
    return {
        "surface": 10.0 * on_value.abs().mean(),
        "normal": 1.0 * (1.0 - nn.functional.cosine_similarity(on_grad, normals, dim=-1)).mean(),
        "eikonal": 1.0 * (off_grad.norm(dim=-1) - 1.0).abs().mean(),
        "off": 0.1 * torch.exp(-40.0 * off_value.abs()).mean(),
    }


field = SDF()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=1e-5)

for step in range(STEPS):
    surface, normals = sample_surface(N_SURFACE)
    space = 2.0 * torch.rand(N_SPACE, 2) - 1.0
    losses = sdf_losses(field, surface, normals, space)
    total = sum(losses.values())
    optimizer.zero_grad(set_to_none=True)
    total.backward()
    torch.nn.utils.clip_grad_norm_(field.parameters(), 10.0)
    optimizer.step()
    scheduler.step()
    if (step + 1) % 100 == 0:
        text = "  ".join(f"{k} {v.item():.4f}" for k, v in losses.items())
        print(f"step {step + 1}: {text}")

axis = torch.linspace(-1, 1, 64)
grid = torch.cartesian_prod(axis, axis)
truth = grid.norm(dim=-1) - 0.5
with torch.no_grad():
    predicted = field(grid)
error = (predicted - truth).abs().mean().item()
inside = ((predicted < 0) == (truth < 0)).float().mean().item()
_, slope = spatial_gradient(field, grid.clone())
print(f"mean absolute distance error {error:.4f}")
print(f"inside/outside agreement {inside:.3f}")
print(f"mean slope {slope.norm(dim=-1).mean().item():.3f}")
