import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def record_beats(count, length, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(-1, 1, length)
    labels = rng.integers(0, 2, count)
    width = np.where(labels == 1, 0.18, 0.08)[:, None]
    beats = np.exp(-(t**2) / width**2) + 0.25 * np.exp(-((t - 0.5) ** 2) / 0.03)
    beats += 0.1 * rng.standard_normal(beats.shape)
    return beats.astype(np.float32), labels


class BeatDataset(Dataset):
    def __init__(self, beats, labels, augment=False):
        self.beats = beats
        self.labels = labels
        self.augment = augment

    def __len__(self):
        return len(self.beats)

    def __getitem__(self, index):
        signal = torch.from_numpy(self.beats[index])
        if self.augment:
            gain = 1.0 + 0.2 * torch.randn(1)
            signal.mul_(gain)
            signal.add_(0.1 * torch.randn_like(signal))
        return signal.unsqueeze(0), int(self.labels[index])


class BeatNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv1d(1, 8, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Conv1d(8, 16, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
            nn.Linear(64, 2),
        )


def accuracy(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for signal, label in loader:
            hits += (model(signal).argmax(1) == label).sum().item()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train_beats, train_labels = record_beats(128, 48, seed=1)
    test_beats, test_labels = record_beats(64, 48, seed=2)
    train_set = BeatDataset(train_beats, train_labels, augment=True)
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(BeatDataset(test_beats, test_labels), batch_size=64)
    model = BeatNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        model.train()
        total = 0.0
        for signal, label in train_loader:
            loss = F.cross_entropy(model(signal), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} test acc {accuracy(model, test_loader):.3f}")
    return train_set


if __name__ == "__main__":
    train_set = main()
