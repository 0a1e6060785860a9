"""Small CNN that grades OCT patches (drusen: yes / no) with on-the-fly speckle and gain augmentation."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def synth_patches(n, rng, size=16):
    """Layered background; positives have one or two faint bumps on the lower layer."""
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    images = np.empty((n, 1, size, size), dtype=np.float32)
    labels = (rng.random(n) < 0.5).astype(np.float32)
    for k in range(n):
        depth = rng.uniform(9, 12)
        img = 0.6 * np.exp(-((yy - depth) / 1.5) ** 2) + 0.4 * np.exp(-((yy - depth + 7) / 2.0) ** 2)
        for _ in range(rng.integers(1, 3) if labels[k] else 0):
            cx = rng.uniform(3, size - 3)
            img += 0.5 * np.exp(-((yy - depth + 2.5) / 1.4) ** 2 - ((xx - cx) / 1.6) ** 2)
        images[k, 0] = img + 0.08 * rng.normal(size=img.shape)
    return images, labels


class PatchDataset(Dataset):
    def __init__(self, images, labels, augment=False):
        self.images = images
        self.labels = labels
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = torch.from_numpy(self.images[i])
        if self.augment:
            gain = 1.0 + 0.1 * torch.randn(())
            img *= gain
            img += 0.1 * torch.randn_like(img)
            if torch.rand(()) < 0.5:
                img = img.flip(-1)
        return img, torch.tensor(self.labels[i])


class PatchNet(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, 1)

    def forward(self, x):
        return self.head(self.features(x).amax(dim=(2, 3))).squeeze(-1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, correct, n = 0.0, 0, 0
    for img, y in loader:
        logit = model(img)
        loss += F.binary_cross_entropy_with_logits(logit, y, reduction="sum").item()
        correct += ((logit > 0) == (y > 0.5)).sum().item()
        n += len(y)
    return loss / n, correct / n


def main(epochs=12, batch_size=20, lr=3e-3):
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    train_images, train_labels = synth_patches(160, rng)
    test_images, test_labels = synth_patches(120, rng)
    train_set = PatchDataset(train_images, train_labels, augment=True)
    train_loader = DataLoader(train_set, batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(PatchDataset(test_images, test_labels), 100)

    model = PatchNet()
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for img, y in train_loader:
            loss = F.binary_cross_entropy_with_logits(model(img), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 4 == 3:
            test_loss, test_acc = evaluate(model, test_loader)
            print(f"epoch {epoch + 1:2d}  train {total / len(train_loader):.3f}  test {test_loss:.3f}  acc {test_acc:.3f}")
    return model, test_loss, test_acc


if __name__ == "__main__":
    main()
