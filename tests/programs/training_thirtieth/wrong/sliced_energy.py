"""Energy-based model of a two-dimensional point cloud, fitted by sliced score matching.

The network gives a scalar energy; its negative gradient is the score.  The objective needs no samples of the model:
    E_v [ v' (d score / dx) v ] + 1/2 |score|^2
After training, points are drawn with unadjusted Langevin steps.
"""
import math

import torch
from torch import nn

BATCH = 128
STEPS = 160
PROJECTIONS = 1


def two_arcs(n, noise=0.12):
    angle = math.pi * torch.rand(n)
    upper = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1)
    lower = torch.stack([1 - torch.cos(angle), 0.4 - torch.sin(angle)], dim=1)
    pick = (torch.rand(n, 1) < 0.5).float()
    points = pick * upper + (1 - pick) * lower - torch.tensor([0.5, 0.2])
    return 2.0 * (points + noise * torch.randn(n, 2))


class Energy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )
        self.well = nn.Parameter(torch.tensor(-2.0))

    def forward(self, x):
        confine = 0.5 * self.well.exp() * x.pow(2).sum(dim=1)
        return self.trunk(x).squeeze(-1) + confine


def score_of(energy, x, create_graph=False):
    (grad,) = torch.autograd.grad(energy(x).sum(), x, create_graph=create_graph)
    return -grad


def sliced_score_matching(energy, batch):
    x = batch.repeat(PROJECTIONS, 1).requires_grad_(True)
    v = torch.randn_like(x).sign()
    score = score_of(energy, x, create_graph=True)
    projected = (score * v).sum()
    (directional,) = torch.autograd.grad(projected, x, retain_graph=True)
    curvature = (directional * v).sum(dim=1)
    magnitude = 0.5 * score.pow(2).sum(dim=1)
    return curvature.mean(), magnitude.mean()


def langevin(energy, n, steps=50, step_size=0.02):
    x = 2.0 * torch.randn(n, 2)
    for _ in range(steps):
        x = x.detach().requires_grad_(True)
        score = score_of(energy, x)
        x = x + step_size * score + math.sqrt(2 * step_size) * torch.randn_like(x)
    return x.detach()


def spread(points):
    return (points[:, 0].std() * points[:, 1].std()).item()


def main():
    torch.manual_seed(5)
    data = two_arcs(4096)
    test = two_arcs(1024)
    energy = Energy()
    optimizer = torch.optim.Adam(energy.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=3e-4)

    for step in range(STEPS):
        batch = data[torch.randint(len(data), (BATCH,))]
        curvature, magnitude = sliced_score_matching(energy, batch)
        loss = curvature + magnitude
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(energy.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step % 40 == 0 or step == STEPS - 1:
            print(
                f"step {step:4d}  loss {loss.item():8.4f}  curvature {curvature.item():8.4f}"
                f"  magnitude {magnitude.item():7.4f}"
            )

    curvature, magnitude = sliced_score_matching(energy, test)
    test_loss = (curvature + magnitude).item()
    samples = langevin(energy, 400)
    nearest = torch.cdist(samples, data).min(dim=1).values.mean().item()
    print(f"test objective {test_loss:.4f}")
    print(f"spread: data {spread(test):.3f}  samples {spread(samples):.3f}")
    print(f"mean distance of a sample to the nearest data point {nearest:.3f}")
    return energy, test_loss, samples


if __name__ == "__main__":
    energy, test_loss, samples = main()
