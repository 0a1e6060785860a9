"""Course project: small keyword spotting on synthetic spectrograms, with time and frequency masking.

Every "word" is a sequence of three formant tracks; speakers differ by a frequency shift and a speed.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

N_MELS, N_FRAMES, N_WORDS = 24, 32, 8


def synth_word(word, rng):
    shift = rng.normal(0, 0.8)
    speed = rng.uniform(0.9, 1.1)
    t = np.arange(N_FRAMES) * speed / N_FRAMES
    bins = np.arange(N_MELS)[:, None]
    spec = np.zeros((N_MELS, N_FRAMES), dtype=np.float32)
    word_rng = np.random.default_rng(1000 + word)
    for _ in range(3):
        start, slope, wobble = word_rng.uniform(4, 20), word_rng.uniform(-8, 8), word_rng.uniform(0, 2)
        track = start + slope * t + wobble * np.sin(6 * t) + shift
        spec += np.exp(-0.5 * ((bins - track[None, :]) / 1.2) ** 2)
    return spec + rng.normal(0, 0.6, spec.shape)


def make_corpus(per_word, seed):
    rng = np.random.default_rng(seed)
    specs, labels = [], []
    for word in range(N_WORDS):
        for _ in range(per_word):
            specs.append(synth_word(word, rng))
            labels.append(word)
    specs = torch.tensor(np.stack(specs), dtype=torch.float32)
    return specs, torch.tensor(labels)


class SpecAugment:
    """Park et al. 2019: blank a few random frequency bands and time spans."""

    def __init__(self, n_masks=2, max_freq=5, max_time=7):
        self.n_masks, self.max_freq, self.max_time = n_masks, max_freq, max_time

    def __call__(self, spec):
        for _ in range(self.n_masks):
            f = int(torch.randint(1, self.max_freq + 1, ()))
            f0 = int(torch.randint(0, N_MELS - f, ()))
            spec[f0:f0 + f, :] = 0.0
            t = int(torch.randint(1, self.max_time + 1, ()))
            t0 = int(torch.randint(0, N_FRAMES - t, ()))
            spec[:, t0:t0 + t] = 0.0
        return spec


class WordDataset(Dataset):
    def __init__(self, specs, labels, transform=None):
        self.specs, self.labels, self.transform = specs, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        spec = self.specs[i]
        if self.transform is not None:
            spec = self.transform(spec)
        return spec.unsqueeze(0), self.labels[i]


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, stride=2, padding=2), nn.BatchNorm2d(12), nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(24 * 6 * 8, N_WORDS),
    )


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


torch.manual_seed(11)
train_set = WordDataset(*make_corpus(40, seed=1), transform=SpecAugment())
test_set = WordDataset(*make_corpus(40, seed=2))
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=160)

model = build_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
curve = []
for epoch in range(20):
    model.train()
    total = 0.0
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    curve.append(total / len(train_set))
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:2d}  train loss {curve[-1]:.3f}  test acc {accuracy(model, test_loader):.3f}")
test_acc = accuracy(model, test_loader)
print(f"final test accuracy {test_acc:.3f}")
