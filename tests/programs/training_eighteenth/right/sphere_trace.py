"""Implicit differentiable rendering (Niemeyer et al. 2020; Yariv et al. 2020) in small: shape from depth maps.

Rays are marched to the surface of a neural distance field; the depth is then differentiated with the implicit function
theorem, so that the march itself needs no graph.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
RAYS, MARCH, STEPS, NEAR, FAR = 192, 20, 220, 0.5, 3.5


def true_distance(p):
    """A ball joined to a smaller one."""
    a = p.norm(dim=-1) - 0.6
    b = (p - p.new_tensor([0.5, 0.35, 0.0])).norm(dim=-1) - 0.35
    return torch.minimum(a, b)


class Distance(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, hidden), nn.Softplus(beta=20),
            nn.Linear(hidden, hidden), nn.Softplus(beta=20),
            nn.Linear(hidden, 1),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, p):
        return p.norm(dim=-1) - 0.75 + self.net(p).squeeze(-1)  # a correction to a ball


def camera_rays(n):
    """Origins on a sphere of radius two, aimed near the center."""
    origin = 2 * F.normalize(torch.randn(n, 3), dim=-1)
    goal = 0.7 * (torch.rand(n, 3) * 2 - 1)
    return origin, F.normalize(goal - origin, dim=-1)


@torch.no_grad()
def march(distance, origin, direction, steps=MARCH):
    depth = torch.full((len(origin),), NEAR)
    for _ in range(steps):
        depth = depth + 0.9 * distance(origin + depth[:, None] * direction)
        depth = depth.clamp(NEAR, FAR)
    hit = distance(origin + depth[:, None] * direction).abs() < 0.02
    return depth, hit


def surface_depth(distance, origin, direction):
    """Depth of the first hit: d depth / d theta = -(d f / d theta) / (grad f . direction)."""
    depth, hit = march(distance, origin, direction)
    point = (origin + depth[:, None] * direction).requires_grad_(True)
    value = distance(point)
    (normal,) = torch.autograd.grad(value.sum(), point, retain_graph=True)
    slope = (normal * direction).sum(-1).detach().clamp(max=-0.1)
    return depth - (value - value.detach()) / slope, hit


def main():
    distance = Distance()
    opt = torch.optim.Adam(distance.parameters(), lr=3e-3)
    for step in range(STEPS):
        origin, direction = camera_rays(RAYS)
        true_depth, true_hit = march(true_distance, origin, direction, 40)
        depth, hit = surface_depth(distance, origin, direction)
        both = hit & true_hit
        depth_loss = (depth - true_depth)[both].abs().mean()
        # silhouettes: rays that should miss stay outside, rays that should hit get inside
        along = torch.linspace(NEAR, FAR, 24)[None, :, None]
        lowest = distance(origin[:, None] + along * direction[:, None]).min(dim=1).values
        mask_loss = F.binary_cross_entropy_with_logits(-20 * lowest, true_hit.float()) / 20
        space = (2 * torch.rand(128, 3) - 1).requires_grad_(True)
        (slope,) = torch.autograd.grad(distance(space).sum(), space, create_graph=True)
        eikonal = (slope.norm(dim=-1) - 1).pow(2).mean()
        loss = depth_loss + mask_loss + 0.05 * eikonal
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 55 == 0:
            print(f"step {step:4d}  depth {depth_loss.item():.4f}  mask {mask_loss.item():.4f}")
    origin, direction = camera_rays(2000)
    true_depth, true_hit = march(true_distance, origin, direction, 60)
    depth, hit = march(distance, origin, direction, 60)
    both = hit & true_hit
    error = (depth - true_depth)[both].abs().mean().item()
    print(f"test depth error {error:.4f}  hit agreement {(hit == true_hit).float().mean().item():.3f}")
    return distance, error


if __name__ == "__main__":
    distance, error = main()
