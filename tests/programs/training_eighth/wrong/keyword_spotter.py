"""Keyword spotting on log-power spectrograms of synthetic tones, with time and frequency masking while training."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

RATE, LENGTH, NFFT, HOP = 4000, 2000, 128, 64
WORDS = 5


def utterances(n, gen):
    label = torch.randint(0, WORDS, (n,), generator=gen)
    t = torch.arange(LENGTH) / RATE
    start = 300.0 + 180.0 * label.float()
    slope = torch.tensor([900.0, -300.0, 500.0, -700.0, 200.0])[label]
    jitter = 60 * torch.randn(n, generator=gen)
    phase = 2 * math.pi * ((start + jitter).unsqueeze(1) * t + 0.5 * slope.unsqueeze(1) * t ** 2)
    wave = torch.sin(phase) + 0.5 * torch.sin(2 * phase)
    return wave + 0.5 * torch.randn(n, LENGTH, generator=gen), label


def log_power(wave):
    spec = torch.stft(wave, NFFT, HOP, window=torch.hann_window(NFFT), return_complex=True)
    feats = torch.log1p(spec.abs() ** 2)
    return feats / feats.std()


class Corpus:
    def __init__(self, n, gen, batch=32):
        wave, self.label = utterances(n, gen)
        self.feats = log_power(wave)
        self.batch = batch
        self.gen = gen

    def __len__(self):
        return len(self.label)

    def loader(self):
        starts = torch.arange(0, len(self), self.batch)
        for s in starts[torch.randperm(len(starts), generator=self.gen)].tolist():
            yield self.feats[s:s + self.batch], self.label[s:s + self.batch]


class SpecMask(nn.Module):
    def __init__(self, gen, freq=10, time=6):
        super().__init__()
        self.gen, self.freq, self.time = gen, freq, time

    def _span(self, limit, width):
        w = int(torch.randint(1, width + 1, (1,), generator=self.gen))
        s = int(torch.randint(0, limit - w, (1,), generator=self.gen))
        return slice(s, s + w)

    def forward(self, feats):
        if not self.training:
            return feats
        for clip in feats:
            clip[self._span(clip.size(0), self.freq)] = 0.0
            clip[:, self._span(clip.size(1), self.time)] = 0.0
        return feats


class Spotter(nn.Module):
    def __init__(self, gen):
        super().__init__()
        self.mask = SpecMask(gen)
        self.conv = nn.Sequential(
            nn.Conv1d(NFFT // 2 + 1, 32, 3, padding=1), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Conv1d(32, 32, 3, padding=1), nn.BatchNorm1d(32), nn.ReLU(),
        )
        self.out = nn.Linear(32, WORDS)

    def forward(self, feats):
        h = self.conv(self.mask(feats))
        return self.out(h.mean(dim=-1))


def accuracy(model, corpus):
    model.eval()
    with torch.no_grad():
        return (model(corpus.feats).argmax(1) == corpus.label).float().mean().item()


def main(epochs=15):
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(4)
    train, held = Corpus(320, gen), Corpus(160, gen)
    model = Spotter(gen)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    energy = train.feats.pow(2).mean().item()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for feats, label in train.loader():
            loss = F.cross_entropy(model(feats), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(label)
        if epoch % 3 == 2:
            print(f"epoch {epoch} loss {total / len(train):.3f}")
    print(f"held-out accuracy {accuracy(model, held):.3f}")
    return model, train, energy


if __name__ == "__main__":
    model, train, energy = main()
