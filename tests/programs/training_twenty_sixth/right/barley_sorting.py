"""Compress spectra of grain samples into discrete codes (vector-quantised autoencoder, codes follow a running mean)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_spectra(n, gen):
    grid = torch.linspace(0, 1, 32)
    peaks = torch.tensor([0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
    variety = torch.randint(0, 6, (n,), generator=gen)
    second = torch.randint(0, 6, (n,), generator=gen)
    shape = torch.exp(-((grid - peaks[variety][:, None]) ** 2) / 0.004)
    shape = shape + 0.5 * torch.exp(-((grid - peaks[second][:, None]) ** 2) / 0.002)
    return shape + 0.03 * torch.randn(n, 32, generator=gen)


class Codebook(nn.Module):
    def __init__(self, n_codes, dim, decay=0.95, eps=1e-5):
        super().__init__()
        self.n_codes, self.decay, self.eps = n_codes, decay, eps
        self.register_buffer("codes", torch.randn(n_codes, dim))
        self.register_buffer("counts", torch.ones(n_codes))
        self.register_buffer("sums", self.codes.clone())

    @torch.no_grad()
    def follow(self, flat, idx):
        onehot = F.one_hot(idx, self.n_codes).to(flat.dtype)
        self.counts.mul_(self.decay).add_(onehot.sum(dim=0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
        total = self.counts.sum()
        smoothed = (self.counts + self.eps) / (total + self.n_codes * self.eps) * total
        self.codes.copy_(self.sums / smoothed[:, None])

    def forward(self, z):
        flat = z.reshape(-1, z.size(-1))
        idx = torch.cdist(flat.detach(), self.codes).argmin(dim=1)
        zq = self.codes[idx].view_as(z)
        if self.training:
            self.follow(flat, idx)
        commitment = F.mse_loss(z, zq)
        return z + (zq - z).detach(), commitment, idx.view(z.shape[:-1])


class SpectrumVQ(nn.Module):
    def __init__(self, n_codes=24, slots=4, dim=6):
        super().__init__()
        self.slots, self.dim = slots, dim
        self.encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, slots * dim))
        self.codebook = Codebook(n_codes, dim)
        self.decoder = nn.Sequential(nn.Linear(slots * dim, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        z = self.encoder(x).view(-1, self.slots, self.dim)
        zq, commitment, idx = self.codebook(z)
        return self.decoder(zq.flatten(1)), commitment, idx


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--beta", type=float, default=0.25)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args([])

    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)
    train, test = make_spectra(4000, gen), make_spectra(500, gen)
    model = SpectrumVQ()
    start_codes = model.codebook.codes.clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for step in range(1, args.steps + 1):
        x = train[torch.randint(0, len(train), (args.batch_size,), generator=gen)]
        recon, commitment, idx = model(x)
        loss = F.mse_loss(recon, x) + args.beta * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}  codes in use {idx.unique().numel()}")

    model.eval()
    with torch.no_grad():
        test_mse = F.mse_loss(model(test)[0], test).item()
    print(f"test mse {test_mse:.4f}  (variance of the data {test.var().item():.4f})")
    return model, start_codes, test_mse, test


if __name__ == "__main__":
    model, start_codes, test_mse, test = main()
