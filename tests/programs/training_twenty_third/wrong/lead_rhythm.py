"""Premature-beat detection on single-lead ECG segments (synthetic), small 1-D CNN."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

FS = 100  # Hz
LENGTH = 160


def bump(t, centre, width, height):
    return height * torch.exp(-0.5 * ((t - centre) / width) ** 2)


def simulate(n, gen):
    """P, QRS and T waves; a premature ventricular beat has no P wave, a wide QRS and an inverted T wave."""
    t = torch.arange(LENGTH) / FS
    beats, labels = [], []
    for _ in range(n):
        u = torch.rand(7, generator=gen)
        ectopic = bool(u[0] < 0.4)
        r = 0.6 + 0.3 * u[1]
        wide = 0.030 + 0.010 * u[2] + (0.012 if ectopic else 0.0)
        x = bump(t, r, wide, 1.0) - bump(t, r + 2 * wide, wide, 0.25 * u[3])
        if not ectopic:
            x = x + bump(t, r - 0.17, 0.03, 0.10 + 0.08 * u[4])
        sign = -1.0 if ectopic and u[5] < 0.6 else 1.0
        x = x + bump(t, r + 0.3, 0.06, sign * (0.15 + 0.15 * u[6]))
        beats.append(x + 0.06 * torch.randn(LENGTH, generator=gen))
        labels.append(float(ectopic))
    return torch.stack(beats), torch.tensor(labels)


class BeatSet(Dataset):
    """Segments with optional augmentation: electrode gain, respiration drift, muscle noise."""

    def __init__(self, beats, labels, augment=False):
        self.beats, self.labels, self.augment = beats, labels, augment
        self.t = torch.arange(LENGTH) / FS

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        beat = self.beats[i]
        if self.augment:
            phase, freq = 2 * math.pi * torch.rand(1), 0.15 + 0.35 * torch.rand(1)
            beat *= 0.8 + 0.4 * torch.rand(1)
            beat += 0.10 * torch.sin(2 * math.pi * freq * self.t + phase)
            beat += 0.08 * torch.randn(LENGTH)
        return beat.unsqueeze(0), self.labels[i]


class RhythmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 8, 9, padding=4), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(4),
            nn.Conv1d(8, 16, 9, padding=4), nn.BatchNorm1d(16), nn.ReLU(), nn.AdaptiveMaxPool1d(4),
        )
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.features(x).flatten(1)).squeeze(1)


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    hits = sum(((net(x) > 0) == (y > 0.5)).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main(epochs=14):
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(31)
    train = BeatSet(*simulate(640, gen), augment=True)
    valid = BeatSet(*simulate(640, gen))
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=160)
    net = RhythmNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        net.train()
        losses = []
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        accuracy = evaluate(net, valid_loader)
        print(f"epoch {epoch + 1:2d}  loss {sum(losses) / len(losses):.3f}  valid accuracy {accuracy:.3f}")
    return net, accuracy


if __name__ == "__main__":
    main()
