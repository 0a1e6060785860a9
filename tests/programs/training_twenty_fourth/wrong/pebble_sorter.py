"""Sort river pebbles by surface pattern: a small CNN with flip + cutout augmentation."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = ("striped", "banded", "speckled", "ringed")

def render(label, rng, size=20):
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    phase, freq = rng.uniform(0, 6.28), rng.uniform(0.9, 1.3)
    if label == 0:
        pattern = np.sin(freq * xx + phase)
    elif label == 1:
        pattern = np.sin(freq * yy + phase)
    elif label == 2:
        pattern = np.sin(freq * xx + phase) * np.sin(freq * yy + phase)
    else:
        cy, cx = rng.uniform(6, 14, size=2)
        pattern = np.sin(freq * np.hypot(yy - cy, xx - cx) + phase)
    return pattern + rng.normal(0, 1.6, size=(size, size))


def make_split(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(CLASSES), size=count)
    images = np.stack([render(y, rng) for y in labels]).astype(np.float32)
    return torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels)


def cutout(image, length):
    """Blank a random square (DeVries & Taylor, 2017)."""
    _, height, width = image.shape
    top = random.randint(0, height - length)
    left = random.randint(0, width - length)
    image[:, top:top + length, left:left + length] = 0.0
    return image


class PebbleDataset(Dataset):
    def __init__(self, images, labels, augment=False, length=7):
        self.images, self.labels = images, labels
        self.augment, self.length = augment, length

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment:
            image = cutout(image, self.length)
            if random.random() < 0.5:
                image = image.flip(-1)
        return image, self.labels[index]


class PebbleNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, padding=2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, len(CLASSES))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean(dim=(2, 3)))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    args = parser.parse_args([])
    random.seed(0)
    torch.manual_seed(0)
    train_set = PebbleDataset(*make_split(640, seed=1), augment=True)
    test_set = PebbleDataset(*make_split(500, seed=2))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=250)
    model = PebbleNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        print(f"epoch {epoch:2d}  train loss {total / len(train_set):.3f}  test acc {accuracy(model, test_loader):.3f}")
    return model, train_set, total / len(train_set)


if __name__ == "__main__":
    model, train_set, final_loss = main()
