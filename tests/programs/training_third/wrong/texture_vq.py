from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantized(NamedTuple):
    z: torch.Tensor
    codes: torch.Tensor
    loss: torch.Tensor


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=16, dim=4, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)
        nn.init.uniform_(self.codebook.weight, -0.5, 0.5)
        self.beta = beta

    def nearest(self, flat):
        return torch.cdist(flat, self.codebook.weight).argmin(dim=1)

    def forward(self, z):
        channels_last = z.permute(0, 2, 3, 1)
        codes = self.nearest(channels_last.flatten(0, 2))
        picked = self.codebook(codes).view_as(channels_last).permute(0, 3, 1, 2)
        quantized = z + (picked - z).detach()
        codebook_loss = F.mse_loss(quantized, z.detach())
        commitment = F.mse_loss(z, quantized.detach())
        return Quantized(quantized, codes, codebook_loss + self.beta * commitment)


class VQAutoencoder(nn.Module):
    def __init__(self, dim=4, width=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(width, dim, 3, padding=1)
        )
        self.quantizer = VectorQuantizer(dim=dim)
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, width, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1)
        )

    def forward(self, x):
        out = self.quantizer(self.encoder(x))
        return self.decoder(out.z), out


def make_textures(n=96, size=8):
    grid = torch.arange(size).float()
    fx, fy = torch.rand(2, n, 1, 1)
    wave = torch.sin(2 * fx * grid[None, None, :] + 2 * fy * grid[None, :, None])
    return wave[:, None] + 0.05 * torch.randn(n, 1, size, size)


def main(epochs=6):
    torch.manual_seed(0)
    images = make_textures()
    model = VQAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        used = set()
        for batch in images[torch.randperm(len(images))].split(16):
            recon, out = model(batch)
            recon_loss = F.mse_loss(recon, batch)
            loss = recon_loss + out.loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            used.update(out.codes.tolist())
        print(f"epoch {epoch} recon {recon_loss.item():.4f} vq {out.loss.item():.4f} codes {len(used)}")
    return model, images


if __name__ == "__main__":
    model, images = main()
