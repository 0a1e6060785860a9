"""Fit a small neural potential to energies and forces of Lennard-Jones clusters."""
import math

import torch
from torch import nn

torch.manual_seed(7)
torch.set_num_threads(1)

N_ATOMS = 5
CUTOFF = 2.6
FORCE_WEIGHT = 1.0


def pair_distances(pos):
    i, j = torch.triu_indices(N_ATOMS, N_ATOMS, offset=1)
    return (pos[:, i] - pos[:, j]).norm(dim=-1)


def reference_energy(pos):
    inv6 = (0.9 / pair_distances(pos)).pow(6)
    return (4 * (inv6.pow(2) - inv6)).sum(-1)


def sample_clusters(n):
    ring = torch.tensor([[math.cos(a), math.sin(a), 0.0] for a in (0.0, 1.57, 3.14, 4.71)])
    base = torch.cat([ring * 0.8, torch.tensor([[0.0, 0.0, 0.75]])])
    pos = base * 1.05 + 0.07 * torch.randn(n, N_ATOMS, 3)
    pos.requires_grad_(True)
    energy = reference_energy(pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), forces.detach()


class RadialBasis(nn.Module):
    def __init__(self, n_basis=24):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.6, CUTOFF, n_basis))
        self.gamma = 40.0

    def forward(self, dist):
        envelope = 0.5 * (torch.cos(math.pi * dist / CUTOFF) + 1) * (dist < CUTOFF)
        return torch.exp(-self.gamma * (dist.unsqueeze(-1) - self.centers) ** 2) * envelope.unsqueeze(-1)


class PairPotential(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.basis = RadialBasis()
        self.mlp = nn.Sequential(
            nn.Linear(24, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1)
        )
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, pos):
        per_pair = self.mlp(self.basis(pair_distances(pos))).squeeze(-1)
        return self.shift + self.scale * per_pair.sum(-1)


def energy_and_forces(model, pos):
    pos = pos.clone().requires_grad_(True)
    energy = model(pos)
    grad, = torch.autograd.grad(energy.sum(), pos, retain_graph=True)
    return energy, -grad


train_pos, train_e, train_f = sample_clusters(64)
test_pos, test_e, test_f = sample_clusters(200)

model = PairPotential()
model.shift.copy_(train_e.mean())
model.scale.copy_(train_e.std())
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=150)

for epoch in range(150):
    model.train()
    for idx in torch.randperm(len(train_pos)).split(16):
        energy, forces = energy_and_forces(model, train_pos[idx])
        loss_e = (energy - train_e[idx]).pow(2).mean()
        loss_f = (forces - train_f[idx]).pow(2).mean()
        loss = loss_e / N_ATOMS + FORCE_WEIGHT * loss_f
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if (epoch + 1) % 50 == 0:
        print(f"epoch {epoch + 1:3d}  energy {loss_e.item():.4f}  forces {loss_f.item():.4f}")

model.eval()
energy, forces = energy_and_forces(model, test_pos)
energy_mae = (energy - test_e).abs().mean().item()
force_mae = (forces - test_f).abs().mean().item()
print(f"test energy MAE {energy_mae:.4f}  force MAE {force_mae:.4f}  (mean |F| {test_f.abs().mean():.4f})")
