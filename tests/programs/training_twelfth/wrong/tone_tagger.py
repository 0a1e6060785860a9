"""Classify short synthetic clips (chord types) from the waveform."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)

SAMPLE_RATE = 4000
CLIP = 512
CHORDS = {"major": (1.0, 1.26, 1.498), "minor": (1.0, 1.189, 1.498),
          "dim": (1.0, 1.189, 1.414), "aug": (1.0, 1.26, 1.587)}


def synthesize(n, noise=0.6):
    labels = torch.randint(0, len(CHORDS), (n,))
    ratios = torch.tensor(list(CHORDS.values()))[labels]
    root = 260.0 + 80.0 * torch.rand(n, 1)
    t = torch.arange(CLIP) / SAMPLE_RATE
    phase = 2 * math.pi * torch.rand(n, 3, 1)
    waves = torch.sin(2 * math.pi * (root * ratios)[:, :, None] * t + phase).sum(1)
    return waves + noise * torch.randn(n, CLIP), labels


class WaveAugment:
    """Random gain, random polarity and a little background noise."""

    def __init__(self, gain_db=6.0, noise=0.5, generator=None):
        self.gain_db = gain_db
        self.noise = noise
        self.generator = generator

    def __call__(self, wave):
        g = self.generator
        db = (torch.rand(1, generator=g) * 2 - 1) * self.gain_db
        if torch.rand(1, generator=g) < 0.5:
            wave.neg_()
        wave.mul_(10 ** (db / 20))
        wave.add_(torch.randn(wave.shape, generator=g), alpha=self.noise)
        return wave


class ClipDataset(Dataset):
    def __init__(self, waves, labels, transform=None):
        self.waves = waves
        self.labels = labels
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        wave = self.waves[index]
        if self.transform is not None:
            wave = self.transform(wave)
        return wave, self.labels[index]


class Tagger(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.net = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, n_classes)
        )
        self.norm = nn.LayerNorm(64)

    def forward(self, wave):
        spec = torch.stft(wave, 256, hop_length=64, window=self.window,
                          return_complex=True).abs()
        feats = torch.log1p(spec[:, :64].mean(-1))
        return self.net(self.norm(feats))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main(epochs=30):
    augment = WaveAugment(generator=torch.Generator().manual_seed(1))
    train_set = ClipDataset(*synthesize(400), transform=augment)
    test_set = ClipDataset(*synthesize(600))
    train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=200)

    model = Tagger(len(CHORDS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        if epoch % 6 == 5:
            print(f"epoch {epoch + 1:2d}  loss {running / len(train_set):.3f}  "
                  f"test acc {accuracy(model, test_loader):.3f}")
    return train_set, accuracy(model, test_loader)


if __name__ == "__main__":
    train_set, test_acc = main()
    print(f"final test accuracy {test_acc:.3f}")
