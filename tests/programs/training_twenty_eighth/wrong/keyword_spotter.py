"""Spoken keywords from raw audio: a trainable filter bank, then a small convolutional network."""
import math

import torch
import torch.nn.functional as F
from torch import nn

WINDOW, HOP = 64, 32
KEYWORDS = {"go": (0.08, 420), "left": (0.13, 480), "seven": (0.11, 760), "tomorrow": (0.17, 900)}


def utterance(pitch, count):
    time = torch.arange(count) / 1000.0
    sweep = 1 + 0.5 * torch.linspace(0, 1, count)
    wave = torch.sin(2 * math.pi * 0.1 * pitch * sweep * time)
    return wave * torch.hann_window(count) + 0.5 * torch.randn(count)


def make_corpus(count, generator):
    corpus = []
    rows = list(KEYWORDS.values())
    for index in range(count):
        label = index % len(rows)
        seconds, pitch = rows[label]
        spread = 0.7 + 0.6 * torch.rand(1, generator=generator).item()
        corpus.append((utterance(pitch, int(6000 * seconds * spread)), label))
    return corpus


def bucketed(corpus, size, generator):
    """Batches of utterances of similar length, in random order, padded with silence."""
    jitter = 1 + 0.1 * torch.rand(len(corpus), generator=generator)
    keys = [len(wave) * share for (wave, _), share in zip(corpus, jitter.tolist())]
    ranked = [corpus[i] for i in sorted(range(len(corpus)), key=keys.__getitem__)]
    groups = [ranked[i : i + size] for i in range(0, len(ranked), size)]
    for index in torch.randperm(len(groups), generator=generator).tolist():
        waves, labels = zip(*groups[index])
        lengths = torch.tensor([len(w) for w in waves])
        yield nn.utils.rnn.pad_sequence(waves, batch_first=True), lengths, torch.tensor(labels)


class FilterBank(nn.Module):
    """Pairs of cosine and sine filters; the output is the log magnitude of every pair."""

    def __init__(self, bands):
        super().__init__()
        time = torch.arange(WINDOW) / 1000.0
        pitch = torch.linspace(20, 240, bands).unsqueeze(1)
        taper = torch.hann_window(WINDOW)
        angle = 2 * math.pi * pitch * time
        self.real = nn.Parameter((taper * angle.cos()).unsqueeze(1) / 8)
        self.imaginary = nn.Parameter((taper * angle.sin()).unsqueeze(1) / 8)

    def forward(self, wave):
        wave = wave.unsqueeze(1)
        real = F.conv1d(wave, self.real, stride=HOP)
        imaginary = F.conv1d(wave, self.imaginary, stride=HOP)
        magnitude = torch.sqrt(real**2 + imaginary**2)
        return torch.log1p(magnitude)


class KeywordNet(nn.Module):
    def __init__(self, bands=20, width=24):
        super().__init__()
        self.bank = FilterBank(bands)
        self.mixer = nn.Conv1d(bands, width, 3, padding=1)
        self.output = nn.Linear(width, len(KEYWORDS))

    def forward(self, wave, lengths):
        hidden = F.relu(self.mixer(self.bank(wave)))
        frames = (lengths - WINDOW) // HOP + 1
        mask = torch.arange(hidden.shape[-1]) < frames.unsqueeze(1)
        pooled = (hidden * mask.unsqueeze(1)).sum(dim=-1) / frames.unsqueeze(1)
        return self.output(pooled)


class Trainer:
    def __init__(self, model, lr=3e-3, max_norm=5.0):
        self.model = model
        self.max_norm = max_norm
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.updates = 0

    def step(self, wave, lengths, labels):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(wave, lengths), labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
            self.updates += 1
        return loss.item()


@torch.no_grad()
def accuracy(model, corpus, generator):
    hits = sum((model(w, n).argmax(1) == y).sum().item() for w, n, y in bucketed(corpus, 32, generator))
    return hits / len(corpus)


def main(epochs=8):
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(29)
    train, test = make_corpus(384, generator), make_corpus(160, generator)
    trainer = Trainer(KeywordNet())
    for epoch in range(epochs):
        losses = [trainer.step(*batch) for batch in bucketed(train, 16, generator)]
        mean = sum(losses) / len(losses)
        score = accuracy(trainer.model, test, generator)
        print(f"epoch {epoch + 1:2d}  loss {mean:.4f}  test accuracy {score:.3f}")
    return trainer, len(losses) * epochs, score


if __name__ == "__main__":
    trainer, batches, score = main()
