import numpy as np
import torch
from torch import nn

torch.manual_seed(2)
rng = np.random.default_rng(2)
CODONS, LENGTH, BLANK = 20, 24, 20


def genome(n):
    rows = np.zeros((n, LENGTH), dtype=np.int64)
    rows[:, 0] = rng.integers(0, CODONS, n)
    for i in range(1, LENGTH):
        jump = np.where(rng.random(n) < 0.85, 3, rng.integers(0, CODONS, n))
        rows[:, i] = (rows[:, i - 1] + jump) % CODONS
    return rows


class Batcher:
    def __init__(self, store, size, share=0.2):
        self.store, self.size, self.share = store, size, share

    def draw(self):
        rows = self.store[rng.integers(0, len(self.store), self.size)]
        hidden = rng.random(rows.shape) < self.share
        truth = torch.from_numpy(rows.copy())
        rows[hidden] = BLANK
        return torch.from_numpy(rows), truth, torch.from_numpy(hidden)


class Filler(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.code = nn.Embedding(CODONS + 1, width)
        self.place = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        self.mix = nn.Conv1d(width, width, 5, padding=2)
        self.out = nn.Sequential(nn.GELU(), nn.Linear(width, CODONS + 1))

    def forward(self, seen):
        h = self.code(seen) + self.place
        return self.out(h + self.mix(h.transpose(1, 2)).transpose(1, 2))


def fill_loss(model, batch):
    seen, truth, hidden = batch
    logits = model(seen)
    cost = nn.functional.cross_entropy(logits.flatten(0, 1), truth.flatten(), reduction="none")
    picked = hidden.flatten().float()
    return (cost * picked).sum() / picked.sum()


batcher = Batcher(genome(2000), 64)
model = Filler()
opt = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
for step in range(150):
    loss = fill_loss(model, batcher.draw())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 29:
        print(f"step {step + 1:4d} fill loss {loss.item():.4f}")

weights = torch.cat([p.detach().flatten() for p in model.parameters()])
print(f"weight norm {weights.norm().item():.4f}")
