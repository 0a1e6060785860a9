"""Recover the geometry of a labelled molecular cluster from a matrix of pairwise energy-transfer signals.

Every label i has a brightness b_i and a position x_i.  The signal of a pair is b_i * b_j * E(r_ij) with the
Foerster efficiency E(r) = 1 / (1 + (r / R0)^6).  Positions and brightnesses are fitted together.
"""
import math

import torch
from torch import nn

FOERSTER_RADIUS = 1.0


def pair_distances(positions):
    offsets = positions.unsqueeze(0) - positions.unsqueeze(1)
    return offsets.pow(2).sum(dim=-1).sqrt()


def efficiency(distances):
    return 1.0 / (1.0 + (distances / FOERSTER_RADIUS).pow(6))


class LabelledCluster(nn.Module):
    def __init__(self, positions, brightness):
        super().__init__()
        self.positions = nn.Parameter(positions.clone())
        self.log_brightness = nn.Parameter(brightness.log())
        count = positions.shape[0]
        self.register_buffer("off_diagonal", ~torch.eye(count, dtype=torch.bool))

    def forward(self):
        transfer = efficiency(pair_distances(self.positions))
        transfer = torch.where(self.off_diagonal, transfer, torch.zeros_like(transfer))
        brightness = self.log_brightness.exp()
        return brightness.unsqueeze(0) * brightness.unsqueeze(1) * transfer


def make_cluster(count, generator):
    angles = torch.linspace(0.0, 2.0 * math.pi * (1.0 - 1.0 / count), count)
    ring = torch.stack([angles.cos(), angles.sin(), 0.4 * (3.0 * angles).sin()], dim=1)
    positions = 0.9 * ring + 0.05 * torch.randn(count, 3, generator=generator)
    brightness = 0.6 + 0.8 * torch.rand(count, generator=generator)
    return positions, brightness


def measure(positions, brightness, noise, generator):
    with torch.no_grad():
        signal = LabelledCluster(positions, brightness)()
        jitter = noise * torch.randn(signal.shape, generator=generator)
    jitter = (jitter + jitter.t()) / 2
    return signal + jitter.fill_diagonal_(0.0)


def bound_gradients(parameters, limit):
    """Keep single entries within +-limit and the norm of the whole gradient below it."""
    parameters = [p for p in parameters if p.grad is not None]
    for p in parameters:
        p.grad.nan_to_num_(nan=0.0, posinf=limit, neginf=-limit).clamp_(-limit, limit)
    return nn.utils.clip_grad_norm_(parameters, limit)


def distance_error(estimate, truth):
    with torch.no_grad():
        upper = torch.triu_indices(truth.shape[0], truth.shape[0], offset=1)
        found = pair_distances(estimate)[upper[0], upper[1]]
        true = pair_distances(truth)[upper[0], upper[1]]
        return (found - true).pow(2).mean().sqrt().item()


def fit(model, signal, steps, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    curve = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = (model() - signal).pow(2).sum() / model.off_diagonal.sum()
        loss.backward()
        norm = bound_gradients(model.parameters(), limit=5.0)
        optimizer.step()
        scheduler.step()
        curve.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:4d}  misfit {loss.item():.5f}  gradient {norm.item():.4f}")
    return curve


def main():
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(5)
    positions, brightness = make_cluster(10, generator)
    signal = measure(positions, brightness, noise=0.003, generator=generator)

    start = positions + 0.2 * torch.randn(positions.shape, generator=generator)
    model = LabelledCluster(start, torch.ones(10))
    print(f"distance error of the starting model {distance_error(model.positions, positions):.4f}")
    curve = fit(model, signal, steps=250, lr=0.02)
    print(f"final misfit {curve[-1]:.6f}")
    print(f"distance error of the fitted model {distance_error(model.positions, positions):.4f}")
    return start, model, curve


if __name__ == "__main__":
    start, model, curve = main()
