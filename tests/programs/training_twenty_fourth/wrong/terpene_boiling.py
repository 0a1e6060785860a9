"""Boiling points of random branched molecules, predicted by a message-passing network on their bond graphs."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

ELEMENTS = ["C", "N", "O", "S"]
POLARITY = torch.tensor([0.0, 0.9, 1.4, 0.4])
SEED, HIDDEN, ROUNDS, EPOCHS, BATCH = 5, 32, 2, 14, 40


def random_molecule(gen):
    """A random tree of 6 to 14 atoms with valence at most 4; some bonds are double."""
    n = int(torch.randint(6, 15, (1,), generator=gen))
    element = torch.multinomial(torch.tensor([0.6, 0.15, 0.15, 0.1]), n, replacement=True, generator=gen)
    degree, bonds, kinds = [0] * n, [], []
    for atom in range(1, n):
        free = [a for a in range(atom) if degree[a] < 3]
        parent = free[int(torch.randint(0, len(free), (1,), generator=gen))]
        degree[parent] += 1
        degree[atom] += 1
        bonds.append((parent, atom))
        kinds.append(float(torch.rand(1, generator=gen) < 0.2))
    bonds, kinds = torch.tensor(bonds).t(), torch.tensor(kinds)
    # polar neighbours raise the boiling point, more so for branched centres
    pull = torch.zeros(n)
    for (a, b), k in zip(bonds.t().tolist(), kinds.tolist()):
        pull[a] += POLARITY[element[b]] * (1 + 0.5 * k)
        pull[b] += POLARITY[element[a]] * (1 + 0.5 * k)
    target = 2.0 * math.sqrt(n) + (pull ** 1.5).sum() / 4
    return element, torch.cat([bonds, bonds.flip(0)], 1), torch.cat([kinds, kinds]), float(target)


def collate(molecules):
    """Join molecules into one disconnected graph."""
    atoms, edges, kinds, owner, targets, offset = [], [], [], [], [], 0
    for i, (element, edge, kind, target) in enumerate(molecules):
        atoms.append(element)
        edges.append(edge + offset)
        kinds.append(kind)
        owner.append(torch.full((len(element),), i))
        targets.append(target)
        offset += len(element)
    return torch.cat(atoms), torch.cat(edges, 1), torch.cat(kinds), torch.cat(owner), torch.tensor(targets)


class Interaction(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(hidden + 1, hidden), nn.SiLU())
        self.update = nn.GRUCell(hidden, hidden)

    def forward(self, h, edges, kinds):
        src, dst = edges
        message = self.message(torch.cat([h[src], kinds.unsqueeze(1)], 1))
        inbox = torch.zeros_like(h)
        inbox[dst] += message
        return self.update(inbox, h)


class BoilingNet(nn.Module):
    def __init__(self, hidden=HIDDEN, rounds=ROUNDS):
        super().__init__()
        self.embed = nn.Embedding(len(ELEMENTS), hidden)
        self.layers = nn.ModuleList(Interaction(hidden) for _ in range(rounds))
        self.atom_out = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, atoms, edges, kinds, owner, size):
        h = self.embed(atoms)
        for layer in self.layers:
            h = layer(h, edges, kinds)
        contribution = self.atom_out(h).squeeze(1)
        return torch.zeros(size).index_add(0, owner, contribution)


def fit(model, train, mean, std, gen):
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        total = 0.0
        for idx in torch.randperm(len(train), generator=gen).split(BATCH):
            *graph, target = collate([train[i] for i in idx.tolist()])
            loss = F.smooth_l1_loss(model(*graph, len(idx)), (target - mean) / std)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        schedule.step()
        if epoch % 4 == 1:
            print(f"epoch {epoch:2d}  train loss {total / len(train):.4f}")


def evaluate(model, molecules, mean, std):
    with torch.no_grad():
        *graph, target = collate(molecules)
        return (model(*graph, len(molecules)) * std + mean - target).abs().mean().item()


if __name__ == "__main__":
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    molecules = [random_molecule(gen) for _ in range(1000)]
    train, test = molecules[:800], molecules[800:]
    targets = torch.tensor([m[-1] for m in train])
    mean, std = targets.mean(), targets.std()
    model = BoilingNet()
    fit(model, train, mean, std, gen)
    print(f"test MAE {evaluate(model, test, mean, std):.3f}   (predicting the mean: "
          f"{(torch.tensor([m[-1] for m in test]) - mean).abs().mean():.3f})")
