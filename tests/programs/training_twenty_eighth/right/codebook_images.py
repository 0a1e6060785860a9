"""Vector-quantised autoencoder of small stripe images; the codebook follows running means of the encoder outputs."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def stripes(n, size=8):
    grid = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    angle = math.pi * torch.randint(0, 4, (n, 1, 1)) / 4
    phase = math.pi * torch.randint(0, 4, (n, 1, 1)) / 2
    image = torch.sin(5 * (angle.cos() * x + angle.sin() * y) + phase)
    return (image + 0.05 * torch.randn(n, size, size)).unsqueeze(1)


class Codebook(nn.Module):
    def __init__(self, size, dim, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        codes = torch.randn(size, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("sums", codes.clone())
        self.register_buffer("counts", torch.ones(size))

    @torch.no_grad()
    def follow(self, flat, index):
        onehot = F.one_hot(index, len(self.codes)).type_as(flat)
        self.counts.mul_(self.decay).add_(onehot.sum(dim=0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
        idle = self.counts < 0.05
        if idle.any():
            picked = flat[torch.randint(len(flat), (int(idle.sum()),))]
            self.sums[idle] = picked
            self.counts[idle] = 1.0
        total = self.counts.sum()
        smooth = (self.counts + self.eps) / (total + len(self.counts) * self.eps) * total
        self.codes.copy_(self.sums / smooth.unsqueeze(1))

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        index = torch.cdist(flat.detach(), self.codes).argmin(dim=1)
        quantised = self.codes[index].view(len(z), *z.shape[2:], -1).permute(0, 3, 1, 2)
        if self.training:
            self.follow(flat.detach(), index)
        commitment = F.mse_loss(z, quantised)
        return z + (quantised - z).detach(), commitment, index


class QuantisedAutoencoder(nn.Module):
    def __init__(self, width=16, dim=4, size=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, dim, 1),
        )
        self.codebook = Codebook(size, dim)
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, width, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        z, commitment, index = self.codebook(self.encoder(x))
        return self.decoder(z), commitment, index


@torch.no_grad()
def evaluate(model, images):
    model.eval()
    output, _, index = model(images)
    model.train()
    return F.mse_loss(output, images).item(), index.unique().numel()


if __name__ == "__main__":
    torch.manual_seed(17)
    train, test = stripes(2000), stripes(400)
    model = QuantisedAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, 241):
        images = train[torch.randint(len(train), (64,))]
        output, commitment, _ = model(images)
        loss = F.mse_loss(output, images) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            error, used = evaluate(model, test)
            print(f"{step:4d}  loss {loss.item():.4f}  test error {error:.4f}  codes in use {used}")
