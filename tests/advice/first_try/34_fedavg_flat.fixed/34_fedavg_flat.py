import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from flat_params import export_flat, import_flat


def build_model():
    return nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))


class Worker:
    def __init__(self, x, y, lr=0.05):
        self.x, self.y = x, y
        self.lr = lr
        self.model = build_model()

    def train(self, flat, epochs=3):
        import_flat(self.model, flat)
        opt = torch.optim.SGD(self.model.parameters(), lr=self.lr)
        for _ in range(epochs):
            for xb, yb in zip(self.x.split(16), self.y.split(16)):
                loss = F.mse_loss(self.model(xb).squeeze(1), yb)
                opt.zero_grad()
                loss.backward()
                opt.step()
        return export_flat(self.model), loss.item()


class Coordinator:
    def __init__(self, workers):
        self.workers = workers
        self.flat = export_flat(build_model())

    def round(self):
        total = sum(len(w.y) for w in self.workers)
        update = None
        losses = []
        for w in self.workers:
            new_flat, loss = w.train(self.flat)
            delta = (new_flat - self.flat) * (len(w.y) / total)
            update = delta if update is None else update + delta
            losses.append(loss)
        self.flat = self.flat + update
        return sum(losses) / len(losses)

    def evaluate(self, x, y):
        model = build_model()
        import_flat(model, self.flat)
        with torch.no_grad():
            return F.mse_loss(model(x).squeeze(1), y).item()


def make_shard(w, shift, n):
    x = torch.randn(n, 6) + shift
    return x, torch.sin(x @ w) + 0.05 * torch.randn(n)


def main():
    torch.manual_seed(20)
    w = torch.randn(6) / 3
    workers = [Worker(*make_shard(w, s, n)) for s, n in [(-0.6, 64), (0.0, 96), (0.6, 48)]]
    test = make_shard(w, 0.0, 200)
    coord = Coordinator(workers)
    for rnd in range(12):
        loss = coord.round()
        if rnd % 3 == 2:
            print(f"round {rnd} local {loss:.4f} loss {coord.evaluate(*test):.4f}")


if __name__ == "__main__":
    main()
