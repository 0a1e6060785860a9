"""Bird-call classifier on log-mel features, with SpecAugment-style masking."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SR, N_FFT, HOP, N_MELS = 8000, 256, 128, 32
SPECIES = 5


def synth_call(label, rng):
    """A chirp with a species-dependent start pitch and sweep, in background noise."""
    n = int(0.6 * SR)
    t = np.arange(n) / SR
    f0 = 700 + 220 * label + rng.normal(0, 50)
    sweep = (900, -500, 1400, 200, -900)[label] + rng.normal(0, 60)
    gate = np.exp(-0.5 * ((t - rng.uniform(0.2, 0.4)) / 0.12) ** 2)
    chirp = np.sin(2 * np.pi * (f0 * t + 0.5 * sweep * t ** 2))
    return (gate * chirp + rng.normal(0, 1.0, n)).astype(np.float32)


def mel_filters():
    hz = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + SR / 2 / 700), N_MELS + 2) / 2595) - 1)
    bins = np.linspace(0, SR / 2, N_FFT // 2 + 1)
    up = (bins - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    down = (hz[2:, None] - bins) / (hz[2:] - hz[1:-1])[:, None]
    return torch.tensor(np.clip(np.minimum(up, down), 0, None), dtype=torch.float32)


def log_mel(wave, filters):
    spec = torch.stft(torch.from_numpy(wave), N_FFT, HOP, window=torch.hann_window(N_FFT), return_complex=True)
    feats = torch.log(filters @ spec.abs().square() + 1e-4)
    return ((feats - feats.mean()) / feats.std()).numpy()


class SpecAugment:
    def __init__(self, freq_width=6, time_width=8, n_freq=1, n_time=1):
        self.freq_width, self.time_width = freq_width, time_width
        self.n_freq, self.n_time = n_freq, n_time

    def __call__(self, feats):
        n_mels, n_frames = feats.shape
        for _ in range(self.n_freq):
            width = random.randint(0, self.freq_width)
            start = random.randint(0, n_mels - width)
            feats[start : start + width, :] = 0.0
        for _ in range(self.n_time):
            width = random.randint(0, self.time_width)
            start = random.randint(0, n_frames - width)
            feats[:, start : start + width] = 0.0
        return feats


class CallDataset(Dataset):
    """Features are computed once and kept in memory."""

    def __init__(self, n, seed, transform=None):
        rng, filters = np.random.default_rng(seed), mel_filters()
        self.labels = rng.integers(0, SPECIES, n)
        self.feats = [log_mel(synth_call(y, rng), filters) for y in self.labels]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        feats = torch.from_numpy(self.feats[i])
        if self.transform is not None:
            feats = self.transform(feats)
        return feats, int(self.labels[i])


def build_model():
    def stage(cin, cout):
        return nn.Sequential(nn.Conv2d(cin, cout, 3, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())
    return nn.Sequential(nn.Unflatten(1, (1, N_MELS)), stage(1, 8), stage(8, 16), stage(16, 32),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, SPECIES))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return float(np.mean([(model(x).argmax(1) == y).float().mean().item() for x, y in loader]))


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    train_set = CallDataset(240, seed=1, transform=SpecAugment())
    val_set = CallDataset(300, seed=2)
    train_loader = DataLoader(train_set, batch_size=24, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)
    model, epochs = build_model(), 24
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.02)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=4e-3, total_steps=epochs * len(train_loader))
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item() * len(y)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:2d} loss {total / len(train_set):.3f} val acc {evaluate(model, val_loader):.3f}")
