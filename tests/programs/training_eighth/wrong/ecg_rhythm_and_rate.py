"""Shared encoder for short ECG strips: rhythm class and heart rate, each task with its own optimizer and step size."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH = 128
FS = 32.0


def strips(n, gen):
    rate = 50 + 70 * torch.rand(n, generator=gen)
    irregular = torch.randint(0, 2, (n,), generator=gen)
    t = torch.arange(LENGTH) / FS
    out = torch.zeros(n, LENGTH)
    for i in range(n):
        beat, at = 60.0 / rate[i].item(), 0.3 * torch.rand(1, generator=gen).item()
        while at < LENGTH / FS:
            out[i] += torch.exp(-((t - at) / 0.05) ** 2)
            spread = 0.35 if irregular[i] else 0.02
            at += beat * (1 + spread * (2 * torch.rand(1, generator=gen).item() - 1))
    out = out + 0.15 * torch.randn(n, LENGTH, generator=gen)
    return out.unsqueeze(1), irregular, (rate - 85) / 20


class StripEncoder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 7, stride=2, padding=3), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.GroupNorm(4, width), nn.ReLU(),
        )
        self.mix = nn.Linear(2 * width, 32)

    def forward(self, x):
        h = self.net(x)
        pooled = torch.cat([h.mean(-1), h.amax(-1)], dim=1)
        return torch.relu(self.mix(pooled))


class CardioTrainer:
    def __init__(self, rhythm_lr=0.05, rate_lr=0.02):
        self.encoder = StripEncoder()
        self.rhythm = nn.Linear(32, 2)
        self.rate = nn.Linear(32, 1)
        shared = list(self.encoder.parameters())
        self.opt_rhythm = torch.optim.SGD(shared + list(self.rhythm.parameters()), lr=rhythm_lr, momentum=0.9)
        self.opt_rate = torch.optim.SGD(shared + list(self.rate.parameters()), lr=rate_lr, momentum=0.9)

    def update(self, x, cls, bpm):
        self.opt_rhythm.zero_grad()
        self.opt_rate.zero_grad()

        rhythm_loss = F.cross_entropy(self.rhythm(self.encoder(x)), cls)
        rhythm_loss.backward()
        self.opt_rhythm.step()

        rate_loss = F.smooth_l1_loss(self.rate(self.encoder(x)).squeeze(1), bpm)
        rate_loss.backward()
        self.opt_rate.step()
        return rhythm_loss.item(), rate_loss.item()

    @torch.no_grad()
    def evaluate(self, x, cls, bpm):
        z = self.encoder(x)
        acc = (self.rhythm(z).argmax(1) == cls).float().mean().item()
        err = (self.rate(z).squeeze(1) - bpm).abs().mean().item() * 20
        return acc, err


def main(epochs=12):
    torch.manual_seed(7)
    gen = torch.Generator().manual_seed(7)
    x, cls, bpm = strips(384, gen)
    xt, ct, bt = strips(128, gen)
    trainer = CardioTrainer()
    for epoch in range(epochs):
        a = b = 0.0
        batches = torch.randperm(len(x), generator=gen).split(32)
        for idx in batches:
            la, lb = trainer.update(x[idx], cls[idx], bpm[idx])
            a, b = a + la, b + lb
        if epoch % 3 == 2:
            print(f"epoch {epoch} rhythm {a / len(batches):.3f} rate {b / len(batches):.3f}")
    acc, err = trainer.evaluate(xt, ct, bt)
    print(f"rhythm accuracy {acc:.3f}, mean rate error {math.floor(err * 10) / 10} bpm")
    return trainer, (xt, ct, bt)


if __name__ == "__main__":
    trainer, held = main()
