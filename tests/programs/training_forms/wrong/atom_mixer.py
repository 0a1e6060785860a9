import torch
from torch import nn

torch.manual_seed(4)


class AtomAttention(nn.Module):
    def __init__(self, dim=24, heads=3):
        super().__init__()
        self.heads = heads
        self.make = nn.ModuleDict({k: nn.Linear(dim, dim, bias=False) for k in ("ask", "key", "val")})
        self.mix = nn.Linear(dim, dim)

    def fold(self, t):
        b, n, d = t.shape
        return t.reshape(b * self.heads, n, d // self.heads)

    def unfold(self, t, b):
        _, n, c = t.shape
        return t.reshape(b, n, c * self.heads)

    def forward(self, atoms):
        ask, key, val = (self.fold(layer(atoms)) for layer in self.make.values())
        weight = torch.softmax(torch.bmm(ask, key.mT) * ask.shape[-1] ** -0.5, dim=-1)
        return self.mix(self.unfold(torch.bmm(weight, val), len(atoms)))


class Potential(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.lift = nn.Linear(4, dim)
        self.layers = nn.ModuleList([AtomAttention(dim) for _ in range(2)])
        self.energy = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, atoms):
        h = self.lift(atoms)
        for layer in self.layers:
            h = h + layer(h)
        return self.energy(h).sum(dim=(1, 2))


def molecules(n, count=9):
    place, charge = torch.randn(n, count, 3), torch.randn(n, count, 1)
    gap = torch.cdist(place, place) + 1.0
    energy = (charge * charge.mT / gap).triu(1).sum((1, 2))
    return torch.cat([place, charge], -1), energy


atoms, energy = molecules(512)
energy = (energy - energy.mean()) / energy.std()
model = Potential()
opt = torch.optim.NAdam(model.parameters(), lr=4e-3)
for epoch in range(8):
    total = 0.0
    for a, e in zip(atoms.split(64), energy.split(64)):
        loss = (model(a) - e).abs().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.item() / 8
    print(f"epoch {epoch} mean absolute error {total:.4f}")
