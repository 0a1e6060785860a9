"""Message-passing regression of a binding affinity on small synthetic molecules (batched as one disjoint graph)."""
import argparse
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

CHARGE = torch.tensor([0.1, -0.6, -0.4, 0.5, 0.3])  # C N O S halogen


@dataclass
class Molecule:
    atoms: torch.Tensor  # [n] element index
    edges: torch.Tensor  # [2, 2m] both directions
    y: float


def grow(rng: random.Random) -> Molecule:
    n = rng.randint(7, 14)
    bonds = {(rng.randrange(max(0, i - 4), i), i) for i in range(1, n)}
    for _ in range(rng.randint(0, 2)):  # ring closures
        a, b = sorted(rng.sample(range(n), 2))
        bonds.add((a, b))
    src = [a for a, b in bonds] + [b for a, b in bonds]
    dst = [b for a, b in bonds] + [a for a, b in bonds]
    atoms = torch.tensor([rng.choices(range(5), weights=[6, 2, 2, 1, 1])[0] for _ in range(n)])
    edges = torch.tensor([src, dst])
    # every atom responds to the field of its neighbourhood
    field = torch.zeros(n).index_add(0, edges[1], CHARGE[atoms[edges[0]]])
    y = torch.tanh(2 * field + CHARGE[atoms]).sum().item() + 0.05 * rng.gauss(0, 1)
    return Molecule(atoms, edges, y)


def collate(mols):
    atoms, edges, owner, shift = [], [], [], 0
    for k, m in enumerate(mols):
        atoms.append(m.atoms)
        edges.append(m.edges + shift)
        owner.append(torch.full((len(m.atoms),), k))
        shift += len(m.atoms)
    y = torch.tensor([m.y for m in mols])
    return torch.cat(atoms), torch.cat(edges, 1), torch.cat(owner), y


class BondLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h, edges):
        src, dst = edges
        msg = self.message(torch.cat([h[src], h[dst]], dim=1))
        inbox = torch.zeros_like(h)
        inbox[dst] += msg
        return h + self.update(torch.cat([h, inbox], dim=1))


class AffinityNet(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        self.embed = nn.Embedding(5, width)
        self.layers = nn.ModuleList(BondLayer(width) for _ in range(depth))
        self.readout = nn.Linear(width, 1)

    def forward(self, atoms, edges, owner, count):
        h = self.embed(atoms)
        for layer in self.layers:
            h = layer(h, edges)
        per_atom = self.readout(h).squeeze(1)
        return torch.zeros(count).index_add(0, owner, per_atom)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=18)
    ap.add_argument("--batch", type=int, default=32)
    args, _ = ap.parse_known_args()
    torch.manual_seed(4)
    rng = random.Random(4)
    train, test = [grow(rng) for _ in range(480)], [grow(rng) for _ in range(160)]
    held = collate(test)
    net = AffinityNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        rng.shuffle(train)
        total = 0.0
        for i in range(0, len(train), args.batch):
            atoms, edges, owner, y = collate(train[i:i + args.batch])
            loss = F.mse_loss(net(atoms, edges, owner, len(y)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        if epoch % 6 == 0 or epoch == args.epochs - 1:
            with torch.no_grad():
                rmse = F.mse_loss(net(*held[:3], len(test)), held[3]).sqrt()
            print(f"epoch {epoch:2d}  train mse {total / len(train):.3f}  test rmse {rmse:.3f}")
    return net, held, rmse.item()


if __name__ == "__main__":
    main()
