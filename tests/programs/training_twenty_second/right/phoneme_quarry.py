"""Discrete speech units: a VQ autoencoder on log-mel frames, codebook learned by running averages."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Options:
    mels: int = 20
    frames: int = 24
    phones: int = 12
    codes: int = 32
    dim: int = 16
    beta: float = 0.25
    decay: float = 0.95
    steps: int = 260
    batch: int = 32
    lr: float = 2e-3


def utterances(n, opt, prototypes, gen):
    """Sequences of phones, each held for three frames, seen through noise and a speaker offset."""
    phones = torch.randint(0, opt.phones, (n, opt.frames // 3), generator=gen).repeat_interleave(3, dim=1)
    speaker = 0.2 * torch.randn(n, 1, opt.mels, generator=gen)
    return prototypes[phones] + speaker + 0.2 * torch.randn(n, opt.frames, opt.mels, generator=gen), phones


class Codebook(nn.Module):
    def __init__(self, codes, dim, decay):
        super().__init__()
        self.decay = decay
        self.register_buffer("vectors", torch.randn(codes, dim))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.vectors.clone())

    @torch.no_grad()
    def learn(self, z, index):
        onehot = F.one_hot(index, len(self.vectors)).to(z.dtype)
        self.count.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(onehot.T @ z, alpha=1 - self.decay)
        self.vectors.copy_(self.total / self.count.clamp(min=1e-3).unsqueeze(1))
        # codes that nobody uses are moved onto frames of this batch
        dead = self.count < 0.02
        if dead.any():
            picked = z[torch.randint(0, len(z), (int(dead.sum()),))]
            self.vectors[dead], self.total[dead], self.count[dead] = picked, picked, 1.0

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        index = torch.cdist(flat.detach(), self.vectors).argmin(dim=1)
        quantized = self.vectors[index].view_as(z)
        if self.training:
            self.learn(flat.detach(), index)
        commitment = F.mse_loss(z, quantized)
        return z + (quantized - z).detach(), index.view(z.shape[:-1]), commitment


class UnitModel(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(opt.mels, 48), nn.ReLU(), nn.Linear(48, opt.dim))
        self.codebook = Codebook(opt.codes, opt.dim, opt.decay)
        self.decoder = nn.Sequential(nn.Linear(opt.dim, 48), nn.ReLU(), nn.Linear(48, opt.mels))

    def forward(self, frames):
        units, index, commitment = self.codebook(self.encoder(frames))
        return self.decoder(units), index, commitment


def purity(index, phones, opt):
    """Share of frames whose unit stands for the right phone, if each unit is named after its most frequent phone."""
    table = torch.zeros(opt.codes, opt.phones)
    table.index_put_((index.flatten(), phones.flatten()), torch.ones(index.numel()), accumulate=True)
    return (table.max(dim=1).values.sum() / table.sum()).item()


opt = Options()
torch.manual_seed(14)
gen = torch.Generator().manual_seed(9)
prototypes = torch.randn(opt.phones, opt.mels, generator=gen)
held_out, held_out_phones = utterances(128, opt, prototypes, gen)
model = UnitModel(opt)
optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
for step in range(opt.steps):
    frames, _ = utterances(opt.batch, opt, prototypes, gen)
    decoded, _, commitment = model(frames)
    loss = F.mse_loss(decoded, frames) + opt.beta * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 52 == 51:
        model.eval()
        with torch.no_grad():
            decoded, index, _ = model(held_out)
            error = F.mse_loss(decoded, held_out).item()
        model.train()
        print(f"step {step + 1}: held-out mse {error:.3f}  purity {purity(index, held_out_phones, opt):.3f}  "
              f"units in use {len(index.unique())}")
