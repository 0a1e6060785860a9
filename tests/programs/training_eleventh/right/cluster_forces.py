"""Interatomic potential for small argon-like clusters, fitted to energies and forces.

The forces are the negative gradient of the predicted energy with respect to the positions, so they are consistent with
the energy by construction.  Reference values come from a Morse potential.
"""
import torch
from torch import nn
import torch.nn.functional as F

SEED = 13
ATOMS = 5
N_TRAIN, N_TEST = 300, 100
EPOCHS, BATCH = 20, 30
CUTOFF = 4.0
FORCE_WEIGHT = 10.0


def pair_distances(positions):
    i, j = torch.triu_indices(ATOMS, ATOMS, offset=1)
    return (positions[:, i] - positions[:, j]).norm(dim=-1)


def morse(positions):
    decay = torch.exp(-1.2 * (pair_distances(positions) - 1.6))
    return (decay * decay - 2 * decay).sum(dim=1)


def reference(n):
    """Clusters with a minimal distance, and their exact energies and forces."""
    kept = []
    while sum(len(k) for k in kept) < n:
        candidates = torch.rand(4000, ATOMS, 3) * 2.8
        kept.append(candidates[pair_distances(candidates).min(dim=1).values > 1.05])
    positions = torch.cat(kept)[:n].requires_grad_()
    energy = morse(positions)
    (slope,) = torch.autograd.grad(energy.sum(), positions)
    return positions.detach(), energy.detach(), -slope


class PairPotential(nn.Module):
    def __init__(self, n_basis=20, width=32):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.8, CUTOFF, n_basis))
        self.gamma = 8.0
        self.net = nn.Sequential(nn.Linear(n_basis, width), nn.Softplus(), nn.Linear(width, width), nn.Softplus(),
                                 nn.Linear(width, 1))
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    @torch.no_grad()
    def calibrate(self, energy):
        self.shift.copy_(energy.mean())
        self.scale.copy_(energy.std())

    def energy(self, positions):
        d = pair_distances(positions)
        basis = torch.exp(-self.gamma * (d[..., None] - self.centers) ** 2)
        envelope = 0.5 * (torch.cos(torch.pi * d / CUTOFF) + 1.0) * (d < CUTOFF)
        pairs = self.net(basis).squeeze(-1) * envelope
        return self.shift + self.scale * pairs.sum(dim=1)

    def forward(self, positions):
        positions = positions.detach().requires_grad_()
        with torch.enable_grad():
            energy = self.energy(positions)
            (slope,) = torch.autograd.grad(energy.sum(), positions, create_graph=self.training)
        return energy, -slope


def evaluate(model, positions, energy, forces):
    model.eval()
    with torch.no_grad():
        e, f = model(positions)
        result = (e - energy).abs().mean().item(), (f - forces).abs().mean().item()
    model.train()
    return result


def main():
    torch.manual_seed(SEED)
    positions, energy, forces = reference(N_TRAIN)
    positions_test, energy_test, forces_test = reference(N_TEST)

    model = PairPotential()
    model.calibrate(energy)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    for epoch in range(EPOCHS):
        order = torch.randperm(N_TRAIN)
        for start in range(0, N_TRAIN, BATCH):
            rows = order[start:start + BATCH]
            e, f = model(positions[rows])
            loss = F.mse_loss(e, energy[rows]) / ATOMS + FORCE_WEIGHT * F.mse_loss(f, forces[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        if (epoch + 1) % 4 == 0:
            e_mae, f_mae = evaluate(model, positions_test, energy_test, forces_test)
            print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}  energy mae {e_mae:.4f}  force mae {f_mae:.4f}")
    print(f"spread of energies {energy_test.std():.3f}, mean size of forces {forces_test.abs().mean():.3f}")


if __name__ == "__main__":
    main()
