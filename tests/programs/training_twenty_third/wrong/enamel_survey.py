"""Defect classifier for enamel tiles: random crops with light photometric augmentation, validated on later tiles."""
import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = ("ok", "scratch", "pinhole", "chip")


def make_tiles(count, seed):
    g = torch.Generator().manual_seed(seed)
    images = 0.5 + 0.08 * torch.randn(count, 1, 20, 20, generator=g)
    labels = torch.randint(0, len(CLASSES), (count,), generator=g)
    for img, lab in zip(images, labels.tolist()):
        r, c = torch.randint(6, 14, (2,), generator=g).tolist()
        if lab == 1:
            img[0, r, c - 3:c + 4] += 0.16
        elif lab == 2:
            img[0, r - 1:r + 1, c - 1:c + 1] -= 0.20
        elif lab == 3:
            img[0, r - 2:r + 2, c - 2:c + 2] += 0.13
    return images.clamp(0, 1), labels


class TileSet(Dataset):
    """Keeps the decoded tiles in memory, the line's disks are slow."""

    def __init__(self, images, labels, crop=16, augment=False):
        self.images = images
        self.labels = labels
        self.crop = crop
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        slack = self.images.shape[-1] - self.crop
        top = random.randint(0, slack) if self.augment else slack // 2
        left = random.randint(0, slack) if self.augment else slack // 2
        tile = self.images[i, :, top:top + self.crop, left:left + self.crop]
        if self.augment:
            tile *= random.uniform(0.9, 1.1)              # lamp ageing
            tile += 0.05 * torch.randn(tile.shape)        # sensor noise
            tile.clamp_(0, 1)
            if random.random() < 0.5:
                tile = tile.flip(-1)
        return (tile - 0.5) / 0.1, self.labels[i]


class TileNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, len(CLASSES))

    def forward(self, x):
        return self.head(self.body(x).amax(dim=(2, 3)))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = hits = seen = 0
    for x, y in loader:
        out = model(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        hits += (out.argmax(1) == y).sum().item()
        seen += len(y)
    return loss / seen, hits / seen


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=14)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=11)
    args, _ = ap.parse_known_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)

    train_set = TileSet(*make_tiles(512, 1), augment=True)
    valid_set = TileSet(*make_tiles(500, 2))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=200)
    model = TileNet()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        vloss, acc = evaluate(model, valid_loader)
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1:2d}  train {total / len(train_set):.3f}  valid {vloss:.3f}  acc {acc:.3f}")
    return model, train_set, acc


if __name__ == "__main__":
    main()
