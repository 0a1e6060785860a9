"""Pairwise neural potential for small Morse clusters, fitted to energies and forces."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)

N_ATOMS = 5
N_TRAIN, N_TEST = 48, 128
CUTOFF = 3.0
ENERGY_WEIGHT, FORCE_WEIGHT = 0.05, 1.0


def morse(pos, depth=1.0, a=1.6, r0=1.1):
    i, j = torch.triu_indices(N_ATOMS, N_ATOMS, offset=1)
    r = (pos[:, i] - pos[:, j]).norm(dim=-1)
    return (depth * ((1 - torch.exp(-a * (r - r0))) ** 2 - 1)).sum(-1)


def make_clusters(n):
    base = torch.randn(N_ATOMS, 3)
    base = 1.0 * base / base.norm(dim=-1, keepdim=True)
    pos = base + 0.18 * torch.randn(n, N_ATOMS, 3)
    pos.requires_grad_(True)
    energy = morse(pos)
    force = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), force


class RadialBasis(nn.Module):
    def __init__(self, n_basis=16):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.3, CUTOFF, n_basis))
        self.gamma = 10.0

    def forward(self, r):
        envelope = 0.5 * (torch.cos(math.pi * (r / CUTOFF).clamp(max=1.0)) + 1)
        return torch.exp(-self.gamma * (r[..., None] - self.centres) ** 2) * envelope[..., None]


class PairPotential(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.basis = RadialBasis()
        self.net = nn.Sequential(nn.Linear(16, hidden), nn.SiLU(),
                                 nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 1))
        self.shift = nn.Parameter(torch.zeros(()))
        self.register_buffer("pairs", torch.triu_indices(N_ATOMS, N_ATOMS, offset=1))

    def energy(self, pos):
        i, j = self.pairs
        r = (pos[:, i] - pos[:, j]).norm(dim=-1)
        return self.net(self.basis(r)).squeeze(-1).sum(-1) + self.shift

    def forward(self, pos):
        pos = pos.detach().requires_grad_(True)
        energy = self.energy(pos)
        # the graph is kept because the loss is differentiated afterwards
        grad, = torch.autograd.grad(energy.sum(), pos, retain_graph=True)
        return energy, -grad


def evaluate(model, data):
    pos, energy, force = data
    e, f = model(pos)
    rmse_e = F.mse_loss(e, energy).sqrt().item()
    rmse_f = F.mse_loss(f, force).sqrt().item()
    return rmse_e, rmse_f


clusters = make_clusters(N_TRAIN + N_TEST)
train = [t[:N_TRAIN] for t in clusters]
test = [t[N_TRAIN:] for t in clusters]

model = PairPotential()
with torch.no_grad():
    model.shift.copy_(train[1].mean())
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=150)

for epoch in range(150):
    order = torch.randperm(N_TRAIN)
    for idx in order.split(16):
        e, f = model(train[0][idx])
        loss = ENERGY_WEIGHT * F.mse_loss(e, train[1][idx]) + FORCE_WEIGHT * F.mse_loss(f, train[2][idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
    scheduler.step()
    if (epoch + 1) % 50 == 0:
        rmse_e, rmse_f = evaluate(model, test)
        print(f"epoch {epoch + 1:3d}  loss {loss.item():.4f}  E rmse {rmse_e:.4f}  F rmse {rmse_f:.4f}")

rmse_e, rmse_f = evaluate(model, test)
print(f"test force rmse {rmse_f:.4f}  (force scale {test[2].std().item():.4f})")
