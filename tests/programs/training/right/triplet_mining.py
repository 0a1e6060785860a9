"""Triplet network with hard negatives picked in numpy."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 12))

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


def mine(z, labels):
    z, labels = z.detach().numpy(), labels.numpy()
    similarity = z @ z.T
    same = labels[:, None] == labels[None, :]
    not_self = ~np.eye(len(z), dtype=bool)
    positive = np.where(same & not_self, similarity, np.inf).argmin(axis=1)
    negative = np.where(same, -np.inf, similarity).argmax(axis=1)
    keep = (same & not_self).any(axis=1) & (~same).any(axis=1)
    anchor = np.flatnonzero(keep)
    return torch.from_numpy(anchor), torch.from_numpy(positive[anchor]), torch.from_numpy(negative[anchor])


def make_data(n_classes, per_class):
    centers = torch.randn(n_classes, 24)
    labels = torch.arange(n_classes).repeat_interleave(per_class)
    return centers[labels] + 0.9 * torch.randn(len(labels), 24), labels


def nearest_accuracy(model, x, labels):
    with torch.no_grad():
        z = model(x)
        similarity = z @ z.t()
        similarity.fill_diagonal_(-2.0)
        return (labels[similarity.argmax(dim=1)] == labels).float().mean().item()


def main():
    torch.manual_seed(2)
    x, labels = make_data(8, 40)
    model = Embed()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"before: nearest neighbour accuracy {nearest_accuracy(model, x, labels):.3f}")
    for epoch in range(8):
        total = 0.0
        batches = torch.randperm(len(x)).split(64)
        for idx in batches:
            z = model(x[idx])
            a, p, n = mine(z, labels[idx])
            loss = F.relu((z[a] * z[n]).sum(1) - (z[a] * z[p]).sum(1) + 0.3).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(batches):.4f} acc {nearest_accuracy(model, x, labels):.3f}")


if __name__ == "__main__":
    main()
