"""Homework 4, part 2: does averaging the weights of the last epochs help a small CNN?

Synthetic 12x12 "seven-segment" digits with jitter, noise and random contrast.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
EPOCHS = 10
AVERAGE_FROM = 6


def draw_digit(label, gen):
    img = torch.zeros(12, 12)
    dy, dx = torch.randint(0, 3, (2,), generator=gen).tolist()
    top, mid, bottom, left, right = 1 + dy, 4 + dy, 8 + dy, 3 + dx, 7 + dx
    strokes = {
        "a": (slice(top, top + 1), slice(left, right + 1)),
        "g": (slice(mid, mid + 1), slice(left, right + 1)),
        "d": (slice(bottom, bottom + 1), slice(left, right + 1)),
        "f": (slice(top, mid + 1), slice(left, left + 1)),
        "b": (slice(top, mid + 1), slice(right, right + 1)),
        "e": (slice(mid, bottom + 1), slice(left, left + 1)),
        "c": (slice(mid, bottom + 1), slice(right, right + 1)),
    }
    for s in SEGMENTS[label]:
        img[strokes[s]] = 1.0
    contrast = 0.5 + torch.rand(1, generator=gen)
    return 3.0 * contrast * img + 0.9 * torch.randn(12, 12, generator=gen) + 1.0


def make_split(n, seed):
    gen = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (n,), generator=gen)
    images = torch.stack([draw_digit(int(l), gen) for l in labels]).unsqueeze(1)
    return TensorDataset(images, labels)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Linear(24 * 9, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class RunningMean:
    """Equal-weight mean of all the snapshots that it is shown."""

    def __init__(self, model):
        self.net = copy.deepcopy(model)
        self.count = 0

    @torch.no_grad()
    def add(self, model):
        self.count += 1
        for mean, value in zip(self.net.parameters(), model.parameters()):
            mean.lerp_(value, 1.0 / self.count)


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(3)
    train_loader = DataLoader(make_split(1200, 0), batch_size=40, shuffle=True)
    test_loader = DataLoader(make_split(600, 1), batch_size=200)

    model = SmallCNN()
    averaged = RunningMean(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[AVERAGE_FROM], gamma=0.4)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        scheduler.step()
        if epoch >= AVERAGE_FROM:
            averaged.add(model)
        if epoch % 3 == 0:
            print(f"epoch {epoch}: loss {total / 1200:.3f}  test acc {accuracy(model, test_loader):.3f}")

    plain, swa = accuracy(model, test_loader), accuracy(averaged.net, test_loader)
    print(f"last weights     {plain:.3f}")
    print(f"averaged weights {swa:.3f}")
    return model, averaged, plain, swa


if __name__ == "__main__":
    main()
