"""Discrete units for speech: frames -> encoder -> nearest code -> decoder. The codes follow a moving average."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Hyper:
    mels: int = 24
    dim: int = 8
    codes: int = 32
    decay: float = 0.95
    commitment: float = 0.25
    steps: int = 500
    batch: int = 256
    lr: float = 2e-3
    seed: int = 13


def frames(n, cfg, seed):
    """Frames of 16 phone-like units, each a fixed spectrum with loudness and noise."""
    spectra = torch.randn(16, cfg.mels, generator=torch.Generator().manual_seed(1))
    g = torch.Generator().manual_seed(seed)
    unit = torch.randint(0, 16, (n,), generator=g)
    loud = 1.0 + 0.15 * torch.randn(n, 1, generator=g)
    return loud * spectra[unit] + 0.25 * torch.randn(n, cfg.mels, generator=g), unit


class CodeBook(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.decay = cfg.decay
        start = torch.randn(cfg.codes, cfg.dim)
        self.register_buffer("codes", start)
        self.register_buffer("count", torch.ones(cfg.codes))
        self.register_buffer("total", start.clone())

    @torch.no_grad()
    def follow(self, z, index):
        onehot = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.count.lerp_(onehot.sum(0), 1 - self.decay)
        self.total.lerp_(onehot.t() @ z, 1 - self.decay)
        n = self.count.sum()
        smooth = (self.count + 1e-3) / (n + 1e-3 * len(self.count)) * n
        self.codes.copy_(self.total / smooth[:, None])
        idle = self.count < 0.5                              # unused codes restart at frames of this batch
        fresh = z[torch.randperm(len(z))[:len(idle)]]
        self.codes[idle], self.total[idle], self.count[idle] = fresh[idle], fresh[idle], 1.0

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes).argmin(dim=1)
        picked = self.codes[index]
        commit = F.mse_loss(z, picked)
        if self.training:
            self.follow(z.detach(), index)
        return z + (picked - z).detach(), index, commit


class UnitCoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(cfg.mels, 64), nn.ReLU(), nn.Linear(64, cfg.dim))
        self.book = CodeBook(cfg)
        self.decoder = nn.Sequential(nn.Linear(cfg.dim, 64), nn.ReLU(), nn.Linear(64, cfg.mels))

    def forward(self, x):
        quantised, index, commit = self.book(self.encoder(x))
        return self.decoder(quantised), index, commit


def purity(index, unit, n_codes):
    table = torch.zeros(n_codes, 16)
    table.index_put_((index, unit), torch.ones(len(unit)), accumulate=True)
    return (table.max(dim=1).values.sum() / len(unit)).item()


def main(cfg=Hyper()):
    torch.manual_seed(cfg.seed)
    x, _ = frames(6000, cfg, seed=2)
    vx, vunit = frames(2000, cfg, seed=3)
    model = UnitCoder(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for step in range(1, cfg.steps + 1):
        model.train()
        batch = x[torch.randint(0, len(x), (cfg.batch,))]
        out, _, commit = model(batch)
        loss = F.mse_loss(out, batch) + cfg.commitment * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                vout, index, _ = model(vx)
            error, pure = F.mse_loss(vout, vx).item(), purity(index, vunit, cfg.codes)
            print(f"step {step}  loss {loss.item():.3f}  valid mse {error:.3f}  "
                  f"used {index.unique().numel()}  purity {pure:.3f}")
    return model, error, pure


if __name__ == "__main__":
    main()
