"""Energies of random small molecules with a message passing network on plain PyTorch index operations.

A batch is one big disconnected graph: atom features, a list of bonds in both directions and the molecule number of
every atom.  The readout is extensive, i.e. the energy of a molecule is the sum of its atomic contributions.
"""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

SEED = 2
ELEMENTS = 4
N_TRAIN, N_TEST = 500, 200
EPOCHS, BATCH = 14, 25

ATOM_ENERGY = np.array([-1.0, -0.4, 0.3, 0.8])
BOND_ENERGY = np.array([
    [0.20, -0.30, 0.10, 0.40],
    [-0.30, 0.50, -0.20, 0.00],
    [0.10, -0.20, 0.30, -0.50],
    [0.40, 0.00, -0.50, -0.10],
])


def random_molecule(rng):
    n = int(rng.integers(4, 11))
    elements = rng.integers(0, ELEMENTS, size=n)
    bonds = [(int(rng.integers(0, k)), k) for k in range(1, n)]
    if n > 5 and rng.random() < 0.5:
        bonds.append((0, n - 1))
    bonds = sorted(set(bonds))
    energy = ATOM_ENERGY[elements].sum() + sum(BOND_ENERGY[elements[a], elements[b]] for a, b in bonds)
    return elements, np.array(bonds), energy + 0.02 * rng.normal()


def collate(molecules):
    elements, edges, owner, energies, offset = [], [], [], [], 0
    for k, (z, bonds, energy) in enumerate(molecules):
        elements.append(z)
        edges.append(bonds + offset)
        owner.append(np.full(len(z), k))
        energies.append(energy)
        offset += len(z)
    edges = np.concatenate(edges)
    edges = np.concatenate([edges, edges[:, ::-1]])
    return (
        torch.from_numpy(np.concatenate(elements)),
        torch.from_numpy(edges.T.copy()),
        torch.from_numpy(np.concatenate(owner)),
        torch.tensor(energies, dtype=torch.float32),
    )


class EnergyNet(nn.Module):
    def __init__(self, width=32, rounds=2):
        super().__init__()
        self.embed = nn.Embedding(ELEMENTS, width)
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(rounds))
        self.update = nn.ModuleList(nn.GRUCell(width, width) for _ in range(rounds))
        self.atomic = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, elements, edges, owner, n_molecules):
        h = self.embed(elements)
        source, target = edges
        for message, update in zip(self.message, self.update):
            m = F.silu(message(torch.cat([h[source], h[target]], dim=-1)))
            inbox = torch.zeros_like(h).index_add_(0, target, m)
            h = update(inbox, h)
        contribution = self.atomic(h).squeeze(-1)
        energy = contribution.new_zeros(n_molecules)
        energy[owner] += contribution
        return energy


@torch.no_grad()
def mean_error(net, molecules, mean, std):
    elements, edges, owner, energy = collate(molecules)
    predicted = net(elements, edges, owner, len(molecules)) * std + mean
    return (predicted - energy).abs().mean().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    train = [random_molecule(rng) for _ in range(N_TRAIN)]
    test = [random_molecule(rng) for _ in range(N_TEST)]
    mean = float(np.mean([m[2] for m in train]))
    std = float(np.std([m[2] for m in train]))

    net = EnergyNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(EPOCHS):
        order = rng.permutation(N_TRAIN)
        for start in range(0, N_TRAIN, BATCH):
            elements, edges, owner, energy = collate([train[i] for i in order[start:start + BATCH]])
            predicted = net(elements, edges, owner, BATCH)
            loss = F.mse_loss(predicted, (energy - mean) / std)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(f"epoch {epoch + 1:2d}  test error {mean_error(net, test, mean, std):.4f}  (spread of energies {std:.3f})")
    return net, mean_error(net, test, mean, std)


if __name__ == "__main__":
    net, test_error = main()
