"""Vector-quantised autoencoder for short whistle snippets, codebook learned by moving averages."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Hyper:
    codes: int = 24
    dim: int = 8
    decay: float = 0.95
    beta: float = 0.25
    batch_size: int = 64
    epochs: int = 14
    lr: float = 3e-3


def make_whistles(count, length=64, seed=0):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, length)
    start = torch.tensor([4.0, 7.0, 10.0])[torch.randint(3, (count, 1), generator=g)]
    sweep = torch.tensor([-3.0, 0.0, 3.0])[torch.randint(3, (count, 1), generator=g)]
    phase = 6.28 * torch.rand(count, 1, generator=g)
    wave = torch.sin(6.28 * (start * t + 0.5 * sweep * t * t) + phase)
    return (wave + 0.05 * torch.randn(count, length, generator=g)).unsqueeze(1)


class Quantizer(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.decay, self.beta = h.decay, h.beta
        self.register_buffer("codebook", torch.randn(h.codes, h.dim))
        self.register_buffer("count", torch.ones(h.codes))
        self.register_buffer("total", self.codebook.clone())

    @torch.no_grad()
    def update(self, flat, index):
        onehot = F.one_hot(index, len(self.codebook)).to(flat.dtype)
        self.count.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(onehot.T @ flat, alpha=1 - self.decay)
        self.codebook.copy_(self.total / self.count.clamp(min=1e-5).unsqueeze(1))
        dead = (self.count < 0.2).nonzero().flatten()
        if len(dead):  # restart unused codes at random encoder outputs
            fresh = flat[torch.randint(len(flat), (len(dead),))]
            self.codebook[dead], self.total[dead], self.count[dead] = fresh, fresh, 1.0

    def forward(self, z):
        flat = z.transpose(1, 2).reshape(-1, z.shape[1])
        index = torch.cdist(flat.detach(), self.codebook).argmin(1)
        q = self.codebook[index].view(z.shape[0], z.shape[2], -1).transpose(1, 2)
        if self.training:
            self.update(flat.detach(), index)
        commit = self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit, index


class WhistleVQ(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 32, 4, stride=2, padding=1), nn.ReLU(),
                                     nn.Conv1d(32, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv1d(32, h.dim, 1))
        self.quantizer = Quantizer(h)
        self.decoder = nn.Sequential(nn.ConvTranspose1d(h.dim, 32, 4, stride=2, padding=1), nn.ReLU(),
                                     nn.ConvTranspose1d(32, 1, 4, stride=2, padding=1))

    def forward(self, x):
        q, commit, index = self.quantizer(self.encoder(x))
        return self.decoder(q), commit, index


def main():
    h = Hyper()
    torch.manual_seed(2)
    train, test = make_whistles(768, seed=1), make_whistles(256, seed=2)
    model = WhistleVQ(h)
    optimizer = torch.optim.Adam(model.parameters(), lr=h.lr)
    for epoch in range(h.epochs):
        model.train()
        for rows in torch.randperm(len(train)).split(h.batch_size):
            recon, commit, _ = model(train[rows])
            loss = F.mse_loss(recon, train[rows]) + commit
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            recon, _, index = model(test)
            used = len(index.unique())
        print(f"epoch {epoch:2d}  test mse {F.mse_loss(recon, test).item():.4f}  codes in use {used}/{h.codes}")
    return model, test


if __name__ == "__main__":
    model, test = main()
