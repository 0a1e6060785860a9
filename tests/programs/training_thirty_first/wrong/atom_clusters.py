"""Fits a pair potential to energies and forces of small atom clusters."""
import torch
from torch import nn
import torch.nn.functional as F

ATOMS = 5
FORCE_WEIGHT = 10.0


def pair_distances(positions, first, second):
    return (positions[:, first] - positions[:, second]).norm(dim=-1)


def reference(positions, first, second):
    """Morse energies and forces, as the quantum chemistry code would deliver them."""
    positions = positions.clone().requires_grad_(True)
    stretch = 1 - torch.exp(-1.5 * (pair_distances(positions, first, second) - 1.2))
    energy = (stretch.pow(2) - 1).sum(dim=1)
    (gradient,) = torch.autograd.grad(energy.sum(), positions)
    return energy.detach(), -gradient


def make_clusters(count, first, second):
    base = torch.tensor([[0, 0, 0], [1.2, 0, 0], [0, 1.2, 0], [0, 0, 1.2], [1.0, 1.0, 1.0]])
    positions = base + 0.15 * torch.randn(count, ATOMS, 3)
    energy, forces = reference(positions, first, second)
    return positions, energy, forces


class PairPotential(nn.Module):
    def __init__(self, basis=12, hidden=32):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.5, 2.8, basis))
        self.net = nn.Sequential(
            nn.Linear(basis, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 1),
        )
        first, second = torch.triu_indices(ATOMS, ATOMS, offset=1)
        self.register_buffer("first", first)
        self.register_buffer("second", second)

    def forward(self, positions):
        distances = pair_distances(positions, self.first, self.second)
        features = torch.exp(-8.0 * (distances.unsqueeze(-1) - self.centres).pow(2))
        return self.net(features).squeeze(-1).sum(dim=1)

    def energy_and_forces(self, positions):
        positions = positions.clone().requires_grad_(True)
        energy = self(positions)
        (gradient,) = torch.autograd.grad(energy.sum(), positions, retain_graph=True)
        return energy, -gradient


def loss_terms(model, positions, energy, forces):
    predicted_energy, predicted_forces = model.energy_and_forces(positions)
    energy_loss = F.mse_loss(predicted_energy / ATOMS, energy / ATOMS)
    force_loss = F.mse_loss(predicted_forces, forces)
    return energy_loss, force_loss


def main():
    torch.manual_seed(2)
    first, second = torch.triu_indices(ATOMS, ATOMS, offset=1)
    train_set = make_clusters(60, first, second)
    test_set = make_clusters(100, first, second)

    model = PairPotential()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    steps, batch_size = 180, 20
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    model.train()
    for step in range(steps):
        rows = torch.randperm(len(train_set[0]))[:batch_size]
        positions, energy, forces = (part[rows] for part in train_set)
        energy_loss, force_loss = loss_terms(model, positions, energy, forces)
        loss = energy_loss + FORCE_WEIGHT * force_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if (step + 1) % 45 == 0:
            print(f"step {step + 1:3d}  energy {energy_loss.item():.5f}  force {force_loss.item():.5f}")

    model.eval()
    energy_error, force_error = (term.sqrt().item() for term in loss_terms(model, *test_set))
    print(f"test RMSE: energy per atom {energy_error:.4f}  force component {force_error:.4f}")


if __name__ == "__main__":
    main()
