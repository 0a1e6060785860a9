"""Message-passing potential for small rare-gas clusters, fitted to energies and forces (reduced units)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--atoms", type=int, default=5)
parser.add_argument("--clusters", type=int, default=256)
parser.add_argument("--epochs", type=int, default=32)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--lr", type=float, default=4e-3)
parser.add_argument("--force-weight", type=float, default=1.0)
parser.add_argument("--seed", type=int, default=8)
args = parser.parse_args([])


def pairs(n):
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    keep = i != j
    return i[keep], j[keep]


def reference(pos):
    """Morse clusters with a weak confining trap: energy and forces."""
    pos = pos.clone().requires_grad_(True)
    i, j = torch.triu_indices(pos.shape[1], pos.shape[1], offset=1)
    d = (pos[:, i] - pos[:, j]).norm(dim=-1)
    energy = (2.0 * (1 - torch.exp(-1.2 * (d - 1.3))) ** 2).sum(1) + 0.3 * (pos ** 2).sum((1, 2))
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return energy.detach(), forces


def make_clusters(n, atoms, g):
    # jittered points of a rough shell, so that no two atoms sit on top of each other
    base = F.normalize(torch.randn(atoms, 3, generator=g), dim=-1) * 1.1
    pos = base + 0.22 * torch.randn(n, atoms, 3, generator=g)
    return (pos, *reference(pos))


class Interaction(nn.Module):
    def __init__(self, width, n_rbf):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(n_rbf, width), nn.SiLU(), nn.Linear(width, width))
        self.update = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, rbf, i, j):
        messages = h[:, j] * self.filter(rbf)
        return h + self.update(torch.zeros_like(h).index_add(1, i, messages))


class Potential(nn.Module):
    """Predicts the standardised energy of a cluster."""

    def __init__(self, atoms, width=24, n_rbf=12, layers=2):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.3, 3.2, n_rbf))
        self.embed = nn.Parameter(torch.randn(width) * 0.3)
        self.layers = nn.ModuleList([Interaction(width, n_rbf) for _ in range(layers)])
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.i, self.j = pairs(atoms)

    def forward(self, pos):
        d = (pos[:, self.i] - pos[:, self.j]).norm(dim=-1, keepdim=True)
        rbf = torch.exp(-8.0 * (d - self.centers) ** 2)
        h = self.embed.expand(*pos.shape[:2], -1)
        for layer in self.layers:
            h = layer(h, rbf, self.i, self.j)
        return self.readout(h).sum((1, 2))


def energy_and_forces(model, pos, create_graph=False):
    pos = pos.detach().requires_grad_(True)
    energy = model(pos)
    forces = -torch.autograd.grad(energy.sum(), pos, create_graph=create_graph)[0]
    return energy, forces


torch.manual_seed(args.seed)
g = torch.Generator().manual_seed(args.seed)
pos, energy, forces = make_clusters(2 * args.clusters, args.atoms, g)
mean, std = energy[:args.clusters].mean(), energy[:args.clusters].std()
target = (energy - mean) / std
train, test = slice(0, args.clusters), slice(args.clusters, None)

model = Potential(args.atoms)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
for epoch in range(args.epochs):
    for idx in torch.randperm(args.clusters).split(args.batch):
        e, f = energy_and_forces(model, pos[train][idx], create_graph=True)
        e_loss = F.mse_loss(e, target[train][idx])
        f_loss = F.mse_loss(f, forces[train][idx])
        opt.zero_grad()
        (e_loss + args.force_weight * f_loss).backward()
        opt.step()
    sched.step()
    if epoch % 8 == 7:
        print(f"epoch {epoch + 1:3d}  energy loss {e_loss.item():.4f}  force loss {f_loss.item():.4f}")

e, f = energy_and_forces(model, pos[test])
e_mae = (e * std + mean - energy[test]).abs().mean().item()
f_mae = (f - forces[test]).abs().mean().item()
print(f"test energy mae {e_mae:.4f} (spread {std.item():.3f})   force mae {f_mae:.4f}")
