import torch
from torch import nn


def reference(pos):
    diff = pos[:, :, None] - pos[:, None]
    dist = (diff.pow(2).sum(-1) + torch.eye(pos.size(1))).sqrt()
    pair = 1.0 - torch.eye(pos.size(1))
    return 0.5 * (pair * ((-dist).exp() - 0.6 * (-(dist - 1.5) ** 2).exp())).sum((1, 2))


class PairPotential(nn.Module):
    def __init__(self, atoms, centres=16):
        super().__init__()
        self.register_buffer("mu", torch.linspace(0.2, 4.0, centres))
        self.register_buffer("rows", torch.triu_indices(atoms, atoms, 1))
        self.mlp = nn.Sequential(nn.Linear(centres, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, pos):
        i, j = self.rows
        dist = (pos[:, i] - pos[:, j]).norm(dim=-1, keepdim=True)
        radial = torch.exp(-4 * (dist - self.mu) ** 2)
        return self.mlp(radial).sum((1, 2))


class ForceField:
    def __init__(self, atoms=6, lr=5e-3, force_weight=4.0):
        self.net = PairPotential(atoms)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr, amsgrad=True)
        self.force_weight = force_weight

    def predict(self, pos):
        pos = pos.clone().requires_grad_()
        energy = self.net(pos)
        (slope,) = torch.autograd.grad(energy.sum(), pos, retain_graph=True)
        return energy, -slope

    def update(self, pos, energy, forces):
        guess_e, guess_f = self.predict(pos)
        per_atom = (guess_e - energy).pow(2).mean() / pos.size(1)
        per_axis = (guess_f - forces).pow(2).mean()
        self.opt.zero_grad()
        (per_atom + self.force_weight * per_axis).backward()
        self.opt.step()
        return per_atom.item(), per_axis.item()


def configurations(n, gen, atoms=6):
    pos = (1.3 * torch.randn(n, atoms, 3, generator=gen)).requires_grad_()
    energy = reference(pos)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return pos.detach(), energy.detach(), forces


def main():
    torch.manual_seed(14)
    gen = torch.Generator().manual_seed(6)
    field = ForceField()
    data = configurations(320, gen)
    for epoch in range(12):
        logs = []
        for rows in torch.randperm(320, generator=gen).split(32):
            logs.append(field.update(*(part[rows] for part in data)))
        e, f = (sum(column) / len(logs) for column in zip(*logs))
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:2d}  energy mse {e:.4f}  force mse {f:.5f}")


if __name__ == "__main__":
    main()
