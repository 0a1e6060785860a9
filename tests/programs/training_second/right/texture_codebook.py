import torch
import torch.nn.functional as F
from torch import nn


class VectorQuantizer(nn.Module):
    def __init__(self, codes, dim, commitment=0.25):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(codes, dim))
        self.commitment = commitment

    def initialise(self, z):
        flat = z.permute(0, 2, 3, 1).flatten(0, 2)
        self.codebook.copy_(flat[torch.randperm(len(flat))[: len(self.codebook)]])

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1)
        nearest = torch.cdist(flat.detach().flatten(0, 2), self.codebook.detach()).argmin(1)
        quantized = self.codebook[nearest].view_as(flat)
        loss = F.mse_loss(quantized, flat.detach()) + self.commitment * F.mse_loss(flat, quantized.detach())
        straight = flat + (quantized - flat).detach()
        return straight.permute(0, 3, 1, 2), loss, nearest


class VQVAE(nn.Module):
    def __init__(self, codes=8, dim=6, width=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, width, 4, 2, 1), nn.SiLU(), nn.Conv2d(width, dim, 1))
        self.quantizer = VectorQuantizer(codes, dim)
        self.decoder = nn.Sequential(nn.Conv2d(dim, width, 3, 1, 1), nn.SiLU(), nn.ConvTranspose2d(width, 1, 4, 2, 1))

    def forward(self, x):
        z, loss, nearest = self.quantizer(self.encoder(x))
        return self.decoder(z), loss, nearest


def textures(count):
    yy, xx = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    frequency = 0.5 + torch.rand(count, 1, 1)
    angle = 3.14159 * torch.rand(count, 1, 1)
    return torch.sin(frequency * (angle.cos() * xx + angle.sin() * yy)).unsqueeze(1)


def main():
    torch.manual_seed(0)
    images = textures(128)
    model = VQVAE()
    with torch.no_grad():
        model.quantizer.initialise(model.encoder(images))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(8):
        for idx in torch.randperm(len(images)).split(32):
            decoded, codebook_loss, nearest = model(images[idx])
            reconstruction = F.mse_loss(decoded, images[idx])
            optimizer.zero_grad()
            (reconstruction + codebook_loss).backward()
            optimizer.step()
        if epoch % 2 == 1:
            used = nearest.unique().numel()
            print(f"epoch {epoch + 1} rec {reconstruction.item():.4f} vq {codebook_loss.item():.4f} codes {used}")


if __name__ == "__main__":
    main()
