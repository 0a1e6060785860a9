"""Keyword spotting on synthetic log-spectrograms with SpecAugment-style time and frequency masking."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

N_MELS, N_FRAMES, N_CLASSES = 24, 40, 6
EPOCHS, BATCH = 14, 32


def synth_spectrograms(n, rng):
    """Every keyword is a pair of formant tracks: a start band, an end band and a position in time."""
    labels = rng.integers(0, N_CLASSES, size=n)
    specs = rng.normal(0, 0.7, size=(n, N_MELS, N_FRAMES)).astype(np.float32)
    for spec, label in zip(specs, labels):
        low = 3 + 2 * (label % 3) + rng.integers(-1, 2)
        high = 14 + 3 * (label // 3) + rng.integers(-1, 2)
        onset = rng.integers(4, 16)
        for t in range(18):
            spec[int(low + 0.15 * t), onset + t] += 1.5
            spec[int(high - 0.15 * t), onset + t] += 1.5
    return torch.from_numpy(specs), torch.from_numpy(labels)


class SpecAugment:
    def __init__(self, freq_width=6, time_width=10, n_masks=1):
        self.freq_width, self.time_width, self.n_masks = freq_width, time_width, n_masks

    def __call__(self, spec):
        for _ in range(self.n_masks):
            width = int(torch.randint(1, self.freq_width + 1, ()))
            start = int(torch.randint(0, N_MELS - width + 1, ()))
            spec[start:start + width, :] = 0.0
            width = int(torch.randint(1, self.time_width + 1, ()))
            start = int(torch.randint(0, N_FRAMES - width + 1, ()))
            spec[:, start:start + width] = 0.0
        return spec


class KeywordDataset(Dataset):
    def __init__(self, specs, labels, transform=None):
        self.specs = specs
        self.labels = labels
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        spec = self.specs[index]
        if self.transform is not None:
            spec = self.transform(spec)
        return spec.unsqueeze(0), self.labels[index]


class KeywordNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d((1, 2)),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        )
        self.classifier = nn.Linear(width * N_MELS, N_CLASSES)

    def forward(self, x):
        h = self.features(x).amax(dim=3)
        return self.classifier(h.flatten(1))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(11)
    rng = np.random.default_rng(11)
    train_set = KeywordDataset(*synth_spectrograms(256, rng), transform=SpecAugment())
    test_set = KeywordDataset(*synth_spectrograms(256, rng))
    train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=128)

    model = KeywordNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        if epoch % 3 == 1:
            print(f"epoch {epoch:2d} train loss {running / len(train_set):.4f}")
    test_acc = accuracy(model, test_loader)
    print(f"test accuracy {test_acc:.4f}")
    return test_acc, train_set


if __name__ == "__main__":
    test_acc, train_set = main()
