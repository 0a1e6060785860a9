"""Call-type classifier for river otter recordings. Alarm calls are rare, so batches are drawn class-balanced."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, WeightedRandomSampler

CALLS = ["whistle", "chirp", "alarm"]


class CallDataset(Dataset):
    """Synthetic mel statistics: one noisy cluster per call type, heavily overlapping."""

    def __init__(self, n, n_features, generator):
        prior = torch.tensor([0.80, 0.16, 0.04])
        self.labels = torch.multinomial(prior, n, replacement=True, generator=generator)
        centers = torch.randn(len(CALLS), n_features, generator=generator) * 0.42
        noise = torch.randn(n, n_features, generator=generator)
        self.features = centers[self.labels] + noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.features[i], self.labels[i]


def split(dataset, val_fraction, generator):
    n_val = int(len(dataset) * val_fraction)
    order = torch.randperm(len(dataset), generator=generator)
    val_idx, train_idx = order[:n_val], order[n_val:]
    return train_idx, val_idx


def balanced_loader(dataset, train_idx, val_idx, batch_size, generator):
    train_mask = torch.ones(len(dataset), dtype=torch.bool)
    train_mask[val_idx] = False
    train_labels = dataset.labels[train_mask]
    counts = torch.bincount(train_labels, minlength=len(CALLS))
    class_weight = 1.0 / counts.double()
    sampler = WeightedRandomSampler(class_weight[train_labels], num_samples=len(train_labels), generator=generator)
    return DataLoader(Subset(dataset, train_idx.tolist()), batch_size=batch_size, sampler=sampler), counts


def build_model(n_features):
    return nn.Sequential(
        nn.Linear(n_features, 32),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(32, len(CALLS)),
    )


@torch.no_grad()
def recalls(model, loader):
    model.eval()
    hits, totals = torch.zeros(len(CALLS)), torch.zeros(len(CALLS))
    for x, y in loader:
        pred = model(x).argmax(dim=1)
        hits += torch.bincount(y[pred == y], minlength=len(CALLS))
        totals += torch.bincount(y, minlength=len(CALLS))
    return hits / totals.clamp(min=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    dataset = CallDataset(args.samples, args.features, generator)
    train_idx, val_idx = split(dataset, 0.25, generator)
    train_loader, counts = balanced_loader(dataset, train_idx, val_idx, args.batch_size, generator)
    val_loader = DataLoader(Subset(dataset, val_idx.tolist()), batch_size=256)
    print("training calls:", dict(zip(CALLS, counts.tolist())))

    model = build_model(args.features)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        print(f"epoch {epoch + 1}  loss {running / len(train_idx):.4f}")

    per_class = recalls(model, val_loader)
    print("validation recall:", {c: round(r, 3) for c, r in zip(CALLS, per_class.tolist())})
    print(f"balanced accuracy {per_class.mean():.3f}")


if __name__ == "__main__":
    main()
