"""Discrete autoencoder for small pictures of strokes: encoder, table of code vectors, decoder."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 16


def strokes(n, seed):
    gen = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, SIZE)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    angle = 3.14159 * torch.rand(n, 1, 1, generator=gen)
    shift = 0.6 * (2 * torch.rand(n, 1, 1, generator=gen) - 1)
    dist = xx * torch.cos(angle) + yy * torch.sin(angle) - shift
    img = torch.exp(-(dist / 0.15) ** 2)
    return (img + 0.03 * torch.randn(n, SIZE, SIZE, generator=gen)).unsqueeze(1)


class Quantizer(nn.Module):
    def __init__(self, codes=32, dim=8, beta=0.5):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        nn.init.normal_(self.codebook.weight, std=1.0)
        self.beta = beta

    def nearest(self, flat):
        table = self.codebook.weight
        dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ table.t() + table.pow(2).sum(1)
        return dist.argmin(dim=1)

    def forward(self, z):
        n, c, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, c)
        with torch.no_grad():
            index = self.nearest(flat)
            z_q = self.codebook(index)
        codebook_loss = F.mse_loss(z_q, flat.detach())
        commit_loss = F.mse_loss(flat, z_q.detach())
        loss = codebook_loss + self.beta * commit_loss
        z_q = flat + (z_q - flat).detach()
        out = z_q.view(n, h, w, c).permute(0, 3, 1, 2)
        return out, loss, index


class DiscreteAutoencoder(nn.Module):
    def __init__(self, dim=8, width=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, dim, 1), nn.BatchNorm2d(dim),
        )
        self.quantizer = Quantizer(dim=dim)
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, width, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        z_q, vq_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(z_q), vq_loss, index


def perplexity(index, codes):
    p = torch.bincount(index, minlength=codes).float()
    p = p / p.sum()
    return torch.exp(-(p * torch.log(p + 1e-10)).sum()).item()


def main(epochs=8):
    torch.manual_seed(6)
    gen = torch.Generator().manual_seed(6)
    data, held = strokes(384, 1), strokes(64, 2)
    model = DiscreteAutoencoder()
    first_table = model.quantizer.codebook.weight.detach().clone()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(data), generator=gen).split(32):
            x = data[idx]
            recon, vq_loss, index = model(x)
            loss = F.mse_loss(recon, x) + vq_loss
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if epoch % 2 == 1:
            print(f"epoch {epoch} loss {total / len(data):.4f}")
    model.eval()
    with torch.no_grad():
        recon, _, index = model(held)
    err = F.mse_loss(recon, held).item()
    print(f"held-out error {err:.4f}, codes in use {perplexity(index, 32):.1f}")
    return model, first_table, err


if __name__ == "__main__":
    model, first_table, err = main()
