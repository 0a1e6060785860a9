"""Compressing vibration signals into discrete codes (vector quantisation, moving-average codebook).

Windows of a bearing signal are encoded into four code numbers each. The codebook follows the
encoder outputs by moving averages, the encoder is trained through the rounding step.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

LENGTH, PIECES = 48, 4
N_CODES, DIM = 24, 6
BATCH, STEPS = 64, 500
COMMIT = 0.25


def vibrations(n):
    """A hum of one of four phases, with a short burst in one of the quarters of the window."""
    t = torch.linspace(0, 1, LENGTH)
    phase = torch.randint(0, 4, (n, 1)) * math.pi / 2
    hum = torch.sin(2 * math.pi * 3 * t + phase)
    center = (torch.randint(0, PIECES, (n, 1)) + 0.5) / PIECES
    strength = 0.5 + torch.randint(0, 2, (n, 1)).float()
    burst = strength * torch.exp(-((t - center) / 0.05) ** 2) * torch.sin(2 * math.pi * 11 * t)
    return hum + burst + 0.1 * torch.randn(n, LENGTH)


class Codebook(nn.Module):
    def __init__(self, n_codes, dim, decay=0.97):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.zeros(n_codes, dim))
        self.register_buffer("counts", torch.ones(n_codes))
        self.register_buffer("sums", torch.zeros(n_codes, dim))

    @torch.no_grad()
    def start_from(self, vectors):
        pick = torch.randperm(len(vectors))[:len(self.codes)]
        self.codes.copy_(vectors[pick])
        self.sums.copy_(vectors[pick])

    @torch.no_grad()
    def follow(self, vectors, index):
        one_hot = F.one_hot(index, len(self.codes)).float()
        self.counts.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(one_hot.t() @ vectors, alpha=1 - self.decay)
        # codes that hardly any window uses start again at an encoder output of this batch
        idle = self.counts < 0.5
        fresh = torch.randint(0, len(vectors), (int(idle.sum()),))
        self.sums[idle] = vectors[fresh]
        self.counts[idle] = 1.0
        self.codes.copy_(self.sums / self.counts.unsqueeze(1))

    def forward(self, vectors):
        index = torch.cdist(vectors.detach(), self.codes).argmin(dim=1)
        chosen = self.codes[index]
        commit = F.mse_loss(vectors, chosen)
        if self.training:
            self.follow(vectors.detach(), index)
        return vectors + (chosen - vectors).detach(), commit, index


class SignalCoder(nn.Module):
    def __init__(self):
        super().__init__()
        piece = LENGTH // PIECES
        self.encode = nn.Sequential(nn.Linear(piece, 32), nn.ReLU(), nn.Linear(32, DIM))
        self.book = Codebook(N_CODES, DIM)
        self.decode = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, piece))

    def forward(self, x):
        pieces = x.view(-1, LENGTH // PIECES)
        quantised, commit, index = self.book(self.encode(pieces))
        return self.decode(quantised).view_as(x), commit, index.view(len(x), PIECES)


train_x, test_x = vibrations(1500), vibrations(400)
model = SignalCoder()
with torch.no_grad():
    model.book.start_from(model.encode(train_x[:100].view(-1, LENGTH // PIECES)))

optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step in range(STEPS):
    model.train()
    batch = train_x[torch.randint(0, len(train_x), (BATCH,))]
    rebuilt, commit, _ = model(batch)
    loss = F.mse_loss(rebuilt, batch) + COMMIT * commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if (step + 1) % 100 == 0:
        model.eval()
        with torch.no_grad():
            rebuilt, commit, index = model(test_x)
        print(f"step {step + 1}: train {loss.item():.4f}  test mse {F.mse_loss(rebuilt, test_x).item():.4f}  "
              f"codes in use {index.unique().numel()}/{N_CODES}")

print(f"variance of the test signals: {test_x.var().item():.4f}")
