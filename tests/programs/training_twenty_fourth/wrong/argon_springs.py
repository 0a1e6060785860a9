"""Fit a smooth pair potential to energies and forces of small argon-like clusters (reduced units)."""
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Settings:
    atoms: int = 6
    train_frames: int = 48
    test_frames: int = 128
    epochs: int = 150
    batch_size: int = 16
    lr: float = 4e-3
    force_weight: float = 1.0
    seed: int = 7


def pair_distances(pos):
    n = pos.shape[1]
    i, j = torch.triu_indices(n, n, offset=1)
    return (pos[:, i] - pos[:, j]).pow(2).sum(-1).add(1e-9).sqrt()


def reference_energy(pos):
    """Morse pairs plus a weak harmonic trap."""
    r = pair_distances(pos)
    morse = (1 - torch.exp(-1.6 * (r - 1.4))).pow(2) - 1
    return morse.sum(-1) + 0.05 * r.pow(2).sum(-1)


def sample_frames(count, settings, generator):
    grid = torch.tensor([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=torch.float32)
    pos = 1.5 * grid[:settings.atoms] + 0.22 * torch.randn(count, settings.atoms, 3, generator=generator)
    pos.requires_grad_(True)
    energy = reference_energy(pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), forces.detach()


class PairPotential(nn.Module):
    def __init__(self, n_basis=16, hidden=32, cutoff=5.0):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.4, cutoff, n_basis))
        self.gamma = 8.0
        self.net = nn.Sequential(nn.Linear(n_basis, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 1))
        self.shift = nn.Parameter(torch.zeros(()))

    def energy(self, pos):
        r = pair_distances(pos)
        basis = torch.exp(-self.gamma * (r.unsqueeze(-1) - self.centers).pow(2))
        return self.net(basis).squeeze(-1).sum(-1) + self.shift

    def forward(self, pos):
        pos = pos.detach().requires_grad_(True)
        energy = self.energy(pos)
        forces = -torch.autograd.grad(energy.sum(), pos, retain_graph=True)[0]
        return energy, forces


def evaluate(model, frames):
    pos, energy, forces = frames
    pred_energy, pred_forces = model(pos)
    return ((pred_energy - energy).abs().mean().item(), (pred_forces - forces).abs().mean().item())


def main(settings):
    generator = torch.Generator().manual_seed(settings.seed)
    torch.manual_seed(settings.seed)
    pos, energy, forces = sample_frames(settings.train_frames, settings, generator)
    test = sample_frames(settings.test_frames, settings, generator)
    model = PairPotential()
    with torch.no_grad():
        model.shift.copy_(energy.mean() - model.energy(pos).mean())
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.epochs)
    for epoch in range(settings.epochs):
        sums = torch.zeros(2)
        for rows in torch.randperm(len(pos), generator=generator).split(settings.batch_size):
            pred_energy, pred_forces = model(pos[rows])
            energy_loss = (pred_energy - energy[rows]).pow(2).mean()
            force_loss = (pred_forces - forces[rows]).pow(2).mean()
            loss = energy_loss + settings.force_weight * force_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums += torch.tensor([energy_loss.item(), force_loss.item()]) * len(rows)
        scheduler.step()
        if (epoch + 1) % 30 == 0:
            e, f = (sums / len(pos)).tolist()
            print(f"epoch {epoch + 1:3d}  energy mse {e:.4f}  force mse {f:.4f}")
    energy_mae, force_mae = evaluate(model, test)
    print(f"test: energy mae {energy_mae:.4f}  force mae {force_mae:.4f}")
    return model, test, force_mae


if __name__ == "__main__":
    model, test, force_mae = main(Settings())
