import torch
from torch import nn


class ProductEncoder(nn.Module):
    def __init__(self, features, width, dim):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, dim, bias=False)
        )

    def forward(self, x):
        return self.layers(x)


def pairwise_distance(z):
    difference = z[:, None, :] - z[None, :, :]
    return difference.pow(2).sum(-1).sqrt()


def batch_triplet_loss(z, labels, margin=0.5):
    distance = pairwise_distance(z)
    same = labels[:, None] == labels[None, :]
    itself = torch.eye(len(z), dtype=torch.bool)
    positive = distance.masked_fill(~same | itself, 0.0).amax(1)
    negative = distance.masked_fill(same, float("inf")).amin(1)
    return torch.relu(positive - negative + margin).mean()


def balanced_batches(labels, per_class, count, generator):
    groups = [torch.nonzero(labels == c).flatten() for c in labels.unique()]
    for _ in range(count):
        yield torch.cat([g[torch.randperm(len(g), generator=generator)[:per_class]] for g in groups])


def recall_at_one(model, x, labels):
    with torch.no_grad():
        distance = torch.cdist(model(x), model(x)).fill_diagonal_(float("inf"))
    return (labels[distance.argmin(1)] == labels).float().mean().item()


def fit(model, x, labels, rounds, lr=3e-3, max_norm=1.0):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    generator = torch.Generator().manual_seed(3)
    for round_ in range(rounds):
        total = 0.0
        for idx in balanced_batches(labels, 6, 6, generator):
            loss = batch_triplet_loss(model(x[idx]), labels[idx])
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            if torch.isfinite(norm):
                optimizer.step()
            total += loss.item()
        print(f"round {round_} loss {total / 6:.4f} recall@1 {recall_at_one(model, x, labels):.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    labels = torch.arange(96) % 4
    prototypes = torch.randn(4, 10)
    x = prototypes[labels] + 1.2 * torch.randn(96, 10)
    model = ProductEncoder(10, 32, 8)
    fit(model, x, labels, rounds=5)
