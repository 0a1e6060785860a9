"""Fit a small pair-potential network to energies and forces of noble-gas clusters."""
import argparse
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class ClusterSet:
    pos: torch.Tensor      # (n, atoms, 3)
    energy: torch.Tensor   # (n,)
    force: torch.Tensor    # (n, atoms, 3)

    def __len__(self):
        return len(self.pos)


def pair_distances(pos):
    n_atoms = pos.shape[1]
    i, j = torch.triu_indices(n_atoms, n_atoms, offset=1)
    return (pos[:, i] - pos[:, j]).norm(dim=-1)


def morse_energy(pos, depth=1.0, a=1.6, r0=1.2):
    r = pair_distances(pos)
    return (depth * ((1 - torch.exp(-a * (r - r0))) ** 2 - 1)).sum(dim=-1)


def make_clusters(n, gen, n_atoms=5):
    base = torch.tensor([[0.0, 0, 0], [1.2, 0, 0], [0.6, 1.04, 0], [0.6, 0.35, 0.98], [0.6, 0.35, -0.98]])[:n_atoms]
    pos = base + 0.10 * torch.randn(n, n_atoms, 3, generator=gen)
    pos.requires_grad_(True)
    energy = morse_energy(pos)
    force = -torch.autograd.grad(energy.sum(), pos)[0]
    return ClusterSet(pos.detach(), energy.detach(), force)


class PairNet(nn.Module):
    def __init__(self, n_basis=16, hidden=32, r_max=3.5):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.4, r_max, n_basis))
        self.gamma = (n_basis / r_max) ** 2 * 0.5
        self.mlp = nn.Sequential(
            nn.Linear(n_basis, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1)
        )
        self.shift = nn.Parameter(torch.zeros(()))

    def forward(self, pos):
        r = pair_distances(pos)
        feat = torch.exp(-self.gamma * (r.unsqueeze(-1) - self.centers) ** 2)
        return self.mlp(feat).squeeze(-1).sum(dim=-1) + self.shift


def energy_and_forces(model, pos):
    pos = pos.clone().requires_grad_(True)
    energy = model(pos)
    grad, = torch.autograd.grad(energy.sum(), pos, retain_graph=True)
    return energy, -grad


def rmse(a, b):
    return (a - b).pow(2).mean().sqrt().item()


def train(args):
    gen = torch.Generator().manual_seed(args.seed)
    torch.manual_seed(args.seed)
    train_set, test_set = make_clusters(args.n_train, gen), make_clusters(200, gen)

    model = PairNet()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(train_set), generator=gen).split(args.batch_size):
            energy, force = energy_and_forces(model, train_set.pos[idx])
            e_loss = (energy - train_set.energy[idx]).pow(2).mean()
            f_loss = (force - train_set.force[idx]).pow(2).mean()
            loss = args.w_energy * e_loss + args.w_force * f_loss
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        if (epoch + 1) % 30 == 0:
            print(f"epoch {epoch + 1:3d}  energy mse {e_loss.item():.4f}  force mse {f_loss.item():.4f}")

    energy, force = energy_and_forces(model, test_set.pos)
    e_err, f_err = rmse(energy, test_set.energy), rmse(force, test_set.force)
    print(f"test energy rmse {e_err:.4f}  force rmse {f_err:.4f}")
    return model, e_err, f_err


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--n_train", type=int, default=40)
    p.add_argument("--epochs", type=int, default=120)
    p.add_argument("--batch_size", type=int, default=10)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--w_energy", type=float, default=1.0)
    p.add_argument("--w_force", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=7)
    model, e_err, f_err = train(p.parse_args())
