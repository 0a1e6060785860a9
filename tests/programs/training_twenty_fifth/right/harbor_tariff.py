"""Tabular regression of port dues with rare berths: target-encoded categories and a small network."""
import math

import numpy as np
import torch
from torch import nn


def port_calls(n, rng, berths=900):
    """Category (berth), four numbers of the ship, and the dues in thousands."""
    berth_effect = rng.normal(0.0, 1.0, berths)
    berth = rng.choice(berths, n, p=rng.dirichlet(np.full(berths, 0.8)))
    ship = rng.normal(size=(n, 4))
    dues = 12 + 2.0 * berth_effect[berth] + ship[:, 0] + 0.6 * ship[:, 1] * ship[:, 2] + rng.normal(0, 1.2, n)
    return berth, ship.astype(np.float32), dues.astype(np.float32)


class BerthMeans:
    """Mean dues of a berth, shrunk towards the overall mean when the berth is rare."""

    def __init__(self, strength=1.0):
        self.strength = strength

    def fit(self, berth, dues):
        self.overall = dues.mean()
        count = np.bincount(berth, minlength=berth.max() + 1)
        total = np.bincount(berth, weights=dues, minlength=len(count))
        self.table = (total + self.strength * self.overall) / (count + self.strength)
        return self

    def transform(self, berth):
        known = berth < len(self.table)
        return np.where(known, self.table[np.where(known, berth, 0)], self.overall).astype(np.float32)

    def fit_transform(self, berth, dues, rng, folds=10):
        fold = rng.integers(0, folds, len(berth))
        encoded = np.empty(len(berth), dtype=np.float32)
        for k in range(folds):
            encoded[fold == k] = BerthMeans(self.strength).fit(berth[fold != k], dues[fold != k]).transform(berth[fold == k])
        self.fit(berth, dues)
        return encoded


class Standard:
    def fit_transform(self, rows):
        self.mean, self.std = rows.mean(0), rows.std(0)
        return self.transform(rows)

    def transform(self, rows):
        return (rows - self.mean) / self.std


def batches(x, y, size):
    order = torch.randperm(len(x))
    for start in range(0, len(x), size):
        pick = order[start:start + size]
        yield x[pick], y[pick]


def main(seed=6, epochs=12):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    berth, ship, dues = port_calls(4000, rng)
    train, test = np.arange(0, 3000), np.arange(3000, 4000)

    encoder, columns, target = BerthMeans(), Standard(), Standard()
    encoded = encoder.fit_transform(berth[train], dues[train], rng)
    x_train = torch.from_numpy(columns.fit_transform(np.column_stack([ship[train], encoded])))
    y_train = torch.from_numpy(target.fit_transform(dues[train]))
    x_test = torch.from_numpy(columns.transform(np.column_stack([ship[test], encoder.transform(berth[test])])))

    model = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    steps = epochs * math.ceil(len(train) / 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=steps)
    for epoch in range(epochs):
        squared = 0.0
        for xb, yb in batches(x_train, y_train, 64):
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            squared += loss.item() * len(xb)
        if epoch % 4 == 3:
            with torch.no_grad():
                guess = model(x_test).numpy() * target.std + target.mean
            rmse = float(np.sqrt(np.mean((guess - dues[test]) ** 2)))
            fitted = math.sqrt(squared / len(train)) * float(target.std)
            print(f"epoch {epoch + 1:2d}  rmse train {fitted:.3f}  test {rmse:.3f}")
    return rmse


if __name__ == "__main__":
    main()
