"""Predict the delivery time of parcels from a table with numeric and categorical columns (entity embeddings)."""
import argparse

import numpy as np
import torch
from torch import nn

CATEGORICAL = ["depot", "carrier", "weekday"]
NUMERIC = ["distance", "weight"]
TARGET = "hours"


def make_table(rows, rng, depots, depot_delay):
    # a few depots handle most of the traffic
    share = 1.0 / (1.0 + np.arange(len(depots)))
    which = rng.choice(len(depots), size=rows, p=rng.permutation(share) / share.sum())
    carriers = np.array(["arrow", "baltic", "crest", "dune"])
    carrier = rng.integers(0, 4, rows)
    weekday = rng.integers(0, 7, rows)
    distance = rng.gamma(2.0, 150.0, rows)
    weight = rng.lognormal(0.5, 0.6, rows)
    hours = (12 + 0.08 * distance + depot_delay[which] + np.array([0.0, 3.0, -2.0, 6.0])[carrier]
             + 8.0 * (weekday >= 5) + rng.normal(0, 1.5, rows))
    return {"depot": depots[which], "carrier": carriers[carrier], "weekday": weekday,
            "distance": distance, "weight": weight, "hours": hours}


class TablePreprocessor:
    """Standardises numbers and turns categories into integer codes."""

    def fit(self, table):
        self.mean = {c: table[c].mean() for c in NUMERIC + [TARGET]}
        self.std = {c: table[c].std() for c in NUMERIC + [TARGET]}
        self.cardinalities = [len(np.unique(table[c])) for c in CATEGORICAL]
        return self

    def transform(self, table):
        numbers = [(table[c] - self.mean[c]) / self.std[c] for c in NUMERIC]
        codes = [np.unique(table[c], return_inverse=True)[1] for c in CATEGORICAL]
        target = (table[TARGET] - self.mean[TARGET]) / self.std[TARGET]
        return (torch.tensor(np.stack(codes, axis=1)), torch.tensor(np.stack(numbers, axis=1)).float(),
                torch.tensor(target).float())


class TabularNet(nn.Module):
    def __init__(self, cardinalities, n_numeric, hidden=64, dropout=0.05):
        super().__init__()
        sizes = [min(16, (n + 1) // 2) for n in cardinalities]
        self.embeddings = nn.ModuleList([nn.Embedding(n, d) for n, d in zip(cardinalities, sizes)])
        self.mlp = nn.Sequential(
            nn.Linear(sum(sizes) + n_numeric, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, codes, numbers):
        parts = [embed(codes[:, i]) for i, embed in enumerate(self.embeddings)]
        return self.mlp(torch.cat(parts + [numbers], dim=1)).squeeze(1)


def mean_absolute_hours(model, data, scale):
    model.eval()
    with torch.no_grad():
        codes, numbers, target = data
        error = (model(codes, numbers) - target).abs().mean().item()
    model.train()
    return error * scale


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args([])

    torch.set_num_threads(1)
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    depots = np.array([f"D{n:03d}" for n in rng.choice(900, size=60, replace=False)])
    depot_delay = rng.normal(0, 8.0, 60)
    train_table = make_table(4000, rng, depots, depot_delay)
    test_table = make_table(160, rng, depots, depot_delay)

    prep = TablePreprocessor().fit(train_table)
    train, test = prep.transform(train_table), prep.transform(test_table)
    model = TabularNet(prep.cardinalities, len(NUMERIC))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(train[2])).split(args.batch_size):
            codes, numbers, target = (part[idx] for part in train)
            loss = nn.functional.smooth_l1_loss(model(codes, numbers), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mae_train, mae_test = (mean_absolute_hours(model, d, prep.std[TARGET]) for d in (train, test))
        print(f"epoch {epoch + 1:2d}: train MAE {mae_train:.2f} h, test MAE {mae_test:.2f} h")
    return mae_train, mae_test, train_table, test_table, train, test


if __name__ == "__main__":
    mae_train, mae_test, train_table, test_table, train, test = main()
