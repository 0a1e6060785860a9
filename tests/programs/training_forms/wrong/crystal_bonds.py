import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(37)


class BondLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.project = nn.Linear(2 * width + 1, 3 * width)
        self.norm = nn.LayerNorm(width)

    def forward(self, atoms, bonds, dist):
        src, dst = bonds
        pair = torch.cat([atoms[src], atoms[dst], dist], dim=-1)
        gate, core, self_part = self.project(pair).split(self.width, dim=-1)
        message = F.softplus(core)
        pooled = torch.zeros_like(atoms).index_add(0, dst, message)
        own = torch.zeros_like(atoms).index_add(0, src, torch.tanh(self_part))
        return atoms + self.norm(pooled + own)


class CrystalNet(nn.Module):
    def __init__(self, kinds, width, depth):
        super().__init__()
        self.kind = nn.Embedding(kinds, width)
        self.layers = nn.ModuleList(BondLayer(width) for _ in range(depth))
        self.energy = nn.Linear(width, 1)

    def forward(self, kinds, bonds, dist, owner, count):
        atoms = self.kind(kinds)
        for layer in self.layers:
            atoms = layer(atoms, bonds, dist)
        return torch.zeros(count).index_add(0, owner, self.energy(atoms).squeeze(-1))


def crystals(count, size=6, kinds=4):
    kind = torch.randint(kinds, (count * size,))
    owner = torch.arange(count).repeat_interleave(size)
    pos = torch.rand(count * size, 3) * 2
    gap = torch.cdist(pos, pos)
    near = (owner[:, None] == owner[None]) & (gap < 1.2) & (gap > 0)
    bonds = near.nonzero().T
    dist = gap[bonds[0], bonds[1]].unsqueeze(-1)
    charge = torch.tensor([-1.0, -0.3, 0.4, 1.0])[kind]
    share = charge[bonds[0]] * charge[bonds[1]] / (dist.squeeze(-1) + 0.3)
    return (kind, bonds, dist, owner, count), torch.zeros(count).index_add(0, owner[bonds[0]], share)


net = CrystalNet(4, 16, 2)
opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
held = crystals(100)
for step in range(1, 101):
    inputs, energy = crystals(40)
    loss = F.l1_loss(net(*inputs), energy)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 0:
        with torch.no_grad():
            print(f"step {step} loss {loss.item():.4f} held out {F.l1_loss(net(*held[0]), held[1]).item():.4f}")
