"""Energy/force surrogate for small clusters: pairwise radial network trained on Morse-potential snapshots."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def morse(pos, depth=1.0, a=1.6, r0=1.2):
    """Reference energy of every cluster, pos: (batch, atoms, 3)."""
    i, j = torch.triu_indices(pos.shape[1], pos.shape[1], offset=1)
    r = (pos[:, i] - pos[:, j]).norm(dim=-1)
    return (depth * ((1 - torch.exp(-a * (r - r0))) ** 2 - 1)).sum(dim=1)


def make_snapshots(n, atoms=5, seed=0):
    gen = torch.Generator().manual_seed(seed)
    base = torch.tensor([[0, 0, 0], [1.2, 0, 0], [0.6, 1.04, 0], [0.6, 0.35, 0.98], [0.6, 0.35, -0.98]])[:atoms]
    pos = (base + 0.18 * torch.randn(n, atoms, 3, generator=gen)).requires_grad_(True)
    energy = morse(pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), forces


class PairEnergy(nn.Module):
    def __init__(self, n_rbf=16, hidden=32, cutoff=4.0):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.4, cutoff, n_rbf))
        self.gamma = (n_rbf / cutoff) ** 2
        self.net = nn.Sequential(nn.Linear(n_rbf, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 1))
        self.shift = nn.Parameter(torch.zeros(()))

    def forward(self, pos):
        i, j = torch.triu_indices(pos.shape[1], pos.shape[1], offset=1)
        r = (pos[:, i] - pos[:, j]).norm(dim=-1, keepdim=True)
        rbf = torch.exp(-self.gamma * (r - self.centers) ** 2)
        return self.net(rbf).sum(dim=(1, 2)) + self.shift


def energy_and_forces(model, pos):
    pos = pos.detach().clone().requires_grad_(True)
    energy = model(pos)
    # the graph of the energy is needed again for the loss
    grad, = torch.autograd.grad(energy.sum(), pos, retain_graph=True)
    return energy, -grad


def evaluate(model, data):
    model.eval()
    energy, forces = energy_and_forces(model, data[0])
    e_mae = (energy - data[1]).abs().mean().item()
    f_mae = (forces - data[2]).abs().mean().item()
    model.train()
    return e_mae, f_mae


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--force-weight", type=float, default=10.0)
    args = parser.parse_args([])

    torch.manual_seed(7)
    train, test = make_snapshots(120, seed=1), make_snapshots(200, seed=2)
    model = PairEnergy()
    with torch.no_grad():
        model.shift.copy_(train[1].mean())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)

    for epoch in range(args.epochs):
        total = 0.0
        for idx in torch.randperm(len(train[0])).split(args.batch):
            pos, e_ref, f_ref = (t[idx] for t in train)
            energy, forces = energy_and_forces(model, pos)
            loss = F.mse_loss(energy, e_ref) + args.force_weight * F.mse_loss(forces, f_ref)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        if epoch % 15 == 14:
            print(f"epoch {epoch + 1:3d}  loss {total / len(train[0]):.4f}")

    e_mae, f_mae = evaluate(model, test)
    print(f"test  energy MAE {e_mae:.4f}  force MAE {f_mae:.4f}  (mean |F| {test[2].abs().mean():.3f})")
    return model


if __name__ == "__main__":
    main()
