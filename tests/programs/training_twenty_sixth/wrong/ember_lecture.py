"""Distil a wide classifier into a small one on unlabelled transfer data."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


def block(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU())


class Wide(nn.Module):
    def __init__(self, n_features, n_classes):
        super().__init__()
        self.body = nn.Sequential(block(n_features, 128), block(128, 128))
        self.head = nn.Linear(128, n_classes)

    def forward(self, x):
        return self.head(self.body(x))


class Narrow(nn.Module):
    def __init__(self, n_features, n_classes):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, n_classes))

    def forward(self, x):
        return self.net(x)


class Distiller(nn.Module):
    """Holds both networks so that one call gives the distillation loss of a batch."""

    def __init__(self, teacher, student, temperature):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = student
        self.temperature = temperature

    def forward(self, x):
        with torch.no_grad():
            target = F.softmax(self.teacher(x) / self.temperature, dim=-1)
        log_pred = F.log_softmax(self.student(x) / self.temperature, dim=-1)
        return F.kl_div(log_pred, target, reduction="batchmean") * self.temperature**2


def make_split(n, centres, g, mix=None):
    n_classes, dim = centres.shape
    weights = torch.ones(n_classes) if mix is None else mix
    y = torch.multinomial(weights, n, replacement=True, generator=g)
    x = centres[y] + torch.randn(n, dim, generator=g)
    return x, y


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def train_teacher(teacher, x, y, epochs, g):
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(epochs):
        teacher.train()
        for idx in torch.randperm(len(x), generator=g).split(64):
            opt.zero_grad()
            F.cross_entropy(teacher(x[idx]), y[idx]).backward()
            opt.step()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--temperature", type=float, default=2.0)
    args, _ = ap.parse_known_args()

    torch.manual_seed(7)
    g = torch.Generator().manual_seed(7)
    centres = torch.randn(8, 20, generator=g) * 0.7
    train_x, train_y = make_split(3000, centres, g)
    test_x, test_y = make_split(2000, centres, g)
    # what the device logged: some classes are far more frequent there
    transfer_x, _ = make_split(3000, centres, g, mix=torch.tensor([30.0, 20, 10, 4, 2, 1, 1, 1]))

    teacher = Wide(20, 8)
    train_teacher(teacher, train_x, train_y, 6, g)
    print(f"teacher accuracy {accuracy(teacher, test_x, test_y):.3f}")

    distiller = Distiller(teacher, Narrow(20, 8), args.temperature)
    opt = torch.optim.Adam(distiller.student.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        distiller.train()
        total = 0.0
        for idx in torch.randperm(len(transfer_x), generator=g).split(args.batch):
            loss = distiller(transfer_x[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        acc = accuracy(distiller.student, test_x, test_y)
        print(f"epoch {epoch:2d}  kd loss {total / len(transfer_x):.4f}  student accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
