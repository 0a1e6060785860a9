"""Discrete autoencoder: every latent vector is replaced by its nearest code, codes follow a moving average."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Quantizer(nn.Module):
    def __init__(self, n_codes, dim, decay=0.95, commitment=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.commitment, self.eps = decay, commitment, eps
        codes = torch.randn(n_codes, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("counts", torch.ones(n_codes))
        self.register_buffer("sums", codes.clone())

    def nearest(self, z):
        return torch.cdist(z, self.codes).argmin(dim=1)

    @torch.no_grad()
    def update(self, z, index):
        one_hot = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.counts.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(one_hot.T @ z, alpha=1 - self.decay)
        total = self.counts.sum()
        smoothed = (self.counts + self.eps) / (total + len(self.counts) * self.eps) * total
        self.codes.copy_(self.sums / smoothed[:, None])

    @torch.no_grad()
    def revive(self, z, g):
        """Move codes that nobody uses onto encoder outputs of this batch."""
        idle = self.counts < 0.05
        pick = torch.randint(len(z), (int(idle.sum()),), generator=g)
        self.codes[idle] = z[pick]
        self.sums[idle] = z[pick]
        self.counts[idle] = 1.0

    def forward(self, z):
        index = self.nearest(z)
        q = self.codes[index]
        commit = self.commitment * F.mse_loss(z, q)
        if self.training:
            self.update(z, index)
        return z + (q - z).detach(), commit, index


class DiscreteAutoencoder(nn.Module):
    def __init__(self, n_in, dim=4, n_codes=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, dim))
        self.quantizer = Quantizer(n_codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, n_in))

    def forward(self, x):
        q, commit, index = self.quantizer(self.encoder(x))
        return self.decoder(q), commit, index


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=2e-3)
    args, _ = ap.parse_known_args()
    torch.manual_seed(13)
    g = torch.Generator().manual_seed(13)
    prototypes = torch.randn(24, 20, generator=g)
    train = prototypes[torch.randint(24, (2000,), generator=g)] + 0.2 * torch.randn(2000, 20, generator=g)
    test = prototypes[torch.randint(24, (500,), generator=g)] + 0.2 * torch.randn(500, 20, generator=g)

    model = DiscreteAutoencoder(20)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(train), generator=g).split(args.batch):
            x = train[idx]
            recon, commit, _ = model(x)
            loss = F.mse_loss(recon, x) + commit
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            model.quantizer.revive(model.encoder(x), g)
        model.eval()
        with torch.no_grad():
            recon, _, index = model(test)
        print(f"epoch {epoch:2d}  test mse {F.mse_loss(recon, test).item():.4f}  codes in use {len(index.unique())}")


if __name__ == "__main__":
    main()
