import math

import torch
import torch.nn.functional as F
from torch import nn


class MessageLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Linear(dim, dim, bias=False)
        self.update = nn.Linear(2 * dim, dim)

    def forward(self, h, adj):
        return h + F.silu(self.update(torch.cat([h, adj @ self.message(h)], -1)))


class MoleculeNet(nn.Module):
    def __init__(self, kinds=4, dim=24, depth=3):
        super().__init__()
        self.atoms = nn.Embedding(kinds, dim)
        self.layers = nn.ModuleList([MessageLayer(dim) for _ in range(depth)])
        self.readout = nn.Linear(dim, 1)

    def forward(self, kinds, adj):
        h = self.atoms(kinds)
        for layer in self.layers:
            h = layer(h, adj)
        return self.readout(h.mean(1)).squeeze(-1)


def molecules(count, atoms):
    kinds = torch.randint(0, 4, (count, atoms))
    upper = torch.triu((torch.rand(count, atoms, atoms) < 0.3).float(), 1)
    adj = upper + upper.transpose(1, 2)
    weight = torch.tensor([0.2, -0.4, 0.7, 1.0])[kinds]
    target = (weight * (adj @ weight.unsqueeze(-1)).squeeze(-1)).mean(1)
    return kinds, adj / 3, (target - target.mean()) / target.std()


def grouped(indices, size):
    for start in range(0, len(indices), size):
        yield indices[start : start + size]


def main(epochs=4, micro_batch=12, accumulate=4):
    torch.manual_seed(0)
    kinds, adj, target = molecules(120, 8)
    model = MoleculeNet()
    updates = epochs * math.ceil(120 / micro_batch / accumulate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=updates)
    for epoch in range(epochs):
        batches = torch.randperm(120).split(micro_batch)
        total = 0.0
        for group in grouped(batches, accumulate):
            optimizer.zero_grad()
            for idx in group:
                loss = F.mse_loss(model(kinds[idx], adj[idx]), target[idx])
                (loss / len(group)).backward()
                total += loss.item()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch} mse {total / len(batches):.4f} updates {scheduler.last_epoch}")


if __name__ == "__main__":
    main()
