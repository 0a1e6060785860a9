"""Project 1 (vision): classify surface defects on 14x14 ferrite patches with light augmentation."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NAMES = ["clean", "scratch", "pit", "band"]


def synthesize(n, rng):
    """Grey patches with a defect of class 0..3, float32 in about [0, 1]."""
    labels = rng.integers(0, len(NAMES), n)
    images = 0.5 + 0.06 * rng.standard_normal((n, 14, 14))
    for img, k in zip(images, labels):
        r, c = rng.integers(2, 11, 2)
        depth = 0.12 + 0.08 * rng.random()
        if k == 1:
            d = np.arange(-2, 3)
            img[np.clip(r + d, 0, 13), np.clip(c + d, 0, 13)] -= depth
        elif k == 2:
            img[r - 1:r + 2, c - 1:c + 2] -= depth
        elif k == 3:
            img[r] -= depth / 1.5
    return images.astype(np.float32), labels.astype(np.int64)


class PatchDataset(Dataset):
    def __init__(self, images, labels, augment=False, seed=0):
        self.images, self.labels = images, labels
        self.augment = augment
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        if self.augment:
            img += self.rng.normal(0.0, 0.05, img.shape).astype(np.float32)   # sensor noise
            img += np.float32(self.rng.uniform(-0.05, 0.05))                  # exposure
            if self.rng.random() < 0.5:
                img = img[:, ::-1]
        x = (torch.from_numpy(img.copy()) - 0.5) / 0.1
        return x.unsqueeze(0), int(self.labels[i])


class PatchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(),
            nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 49, 48), nn.ReLU(), nn.Linear(48, len(NAMES)))

    def forward(self, x):
        return self.head(self.features(x))


def evaluate(model, loader):
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            count += len(y)
    return hits / count


def main(epochs=12):
    torch.manual_seed(21)
    rng = np.random.default_rng(21)
    train_set = PatchDataset(*synthesize(600, rng), augment=True)
    test_set = PatchDataset(*synthesize(300, rng))
    train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=200)

    model, criterion = PatchNet(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        acc = evaluate(model, test_loader)
        print(f"epoch {epoch + 1:2d}  loss {running / len(train_set):.3f}  test acc {acc:.3f}")
    return acc


if __name__ == "__main__":
    main()
