"""Discrete units for synthetic speech frames: an autoencoder with a codebook kept by running averages."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)


def make_utterances(count, length=64):
    phones = torch.randint(0, 6, (count, length // 8)).repeat_interleave(8, 1)
    t = torch.arange(length)
    centres = torch.linspace(2, 13, 6)[phones]
    bands = torch.arange(16)
    frames = torch.exp(-0.5 * ((bands - centres[..., None]) / 1.5) ** 2)
    loud = 1 + 0.3 * torch.sin(2 * math.pi * t / 16 + torch.rand(count, 1) * 6)
    return (frames * loud[..., None] + 0.05 * torch.randn(count, length, 16)).transpose(1, 2), phones


class Codebook(nn.Module):
    def __init__(self, size, width, decay=0.97):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(size, width))
        self.register_buffer("count", torch.ones(size))
        self.register_buffer("total", self.codes.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def update(self, flat, index):
        hot = F.one_hot(index, len(self.codes)).type_as(flat)
        self.count.lerp_(hot.sum(0), 1 - self.decay)
        self.total.lerp_(hot.t() @ flat, 1 - self.decay)
        unused = self.count < 0.5
        fresh = flat[torch.randint(0, len(flat), (int(unused.sum()),))]
        self.count[unused] = 1.0
        self.total[unused] = fresh
        self.codes.copy_(self.total / self.count[:, None])

    @torch.no_grad()
    def start(self, flat):
        pick = flat[torch.randperm(len(flat))[:len(self.codes)]]
        self.codes.copy_(pick)
        self.total.copy_(pick)
        self.ready.fill_(True)

    def forward(self, z):
        flat = z.detach().transpose(1, 2).reshape(-1, z.shape[1])
        if self.training and not self.ready:
            self.start(flat)
        index = torch.cdist(flat, self.codes).argmin(1)
        q = self.codes[index].view(z.shape[0], z.shape[2], -1).transpose(1, 2)
        if self.training:
            self.update(flat, index)
        commit = F.mse_loss(z, q)
        return z + (q - z).detach(), commit, index.view(z.shape[0], -1)


class UnitCoder(nn.Module):
    def __init__(self, width=24, size=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(16, width, 5, padding=2), nn.GELU(), nn.Conv1d(width, 8, 4, stride=4))
        self.book = Codebook(size, 8)
        self.decoder = nn.Sequential(nn.ConvTranspose1d(8, width, 4, stride=4), nn.GELU(),
                                     nn.Conv1d(width, 16, 5, padding=2))

    def forward(self, x):
        q, commit, index = self.book(self.encoder(x))
        return self.decoder(q), commit, index


def purity(index, phones):
    label = phones[:, ::4].flatten()
    table = torch.zeros(int(index.max()) + 1, 6).index_put_((index.flatten(), label), torch.ones(()), accumulate=True)
    return (table.max(1).values.sum() / table.sum()).item()


model = UnitCoder()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
speech, _ = make_utterances(256)
for step in range(400):
    batch = speech[torch.randint(0, len(speech), (32,))]
    out, commit, _ = model(batch)
    loss = F.mse_loss(out, batch) + 0.25 * commit
    opt.zero_grad()
    loss.backward()
    opt.step()

model.eval()
with torch.no_grad():
    speech, phones = make_utterances(64)
    out, commit, index = model(speech)
print(f"test error {F.mse_loss(out, speech).item():.4f} (variance {speech.var().item():.4f})  "
      f"units in use {index.unique().numel()}  purity {purity(index, phones):.3f}")
