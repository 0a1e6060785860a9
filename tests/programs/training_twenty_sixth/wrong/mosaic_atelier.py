"""Vector-quantised autoencoder (cosine codebook) on 8x8 tile patterns."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    n_codes: int = 48
    code_dim: int = 16
    beta: float = 0.25
    batch_size: int = 64
    steps: int = 300
    lr: float = 2e-3
    seed: int = 11


def make_tiles(n, gen):
    """Each tile is one of 16 motifs, shifted in brightness, with some grain."""
    motifs = (torch.rand(16, 1, 8, 8, generator=torch.Generator().manual_seed(99)) > 0.5).float()
    kind = torch.randint(0, 16, (n,), generator=gen)
    brightness = 0.8 + 0.4 * torch.rand(n, 1, 1, 1, generator=gen)
    return motifs[kind] * brightness + 0.05 * torch.randn(n, 1, 8, 8, generator=gen)


class Quantizer(nn.Module):
    def __init__(self, n_codes, dim, beta):
        super().__init__()
        self.beta = beta
        self.codebook = nn.Embedding(n_codes, dim)

    def forward(self, z):
        # z: (B, D, H, W) -> (B*H*W, D); latents and codes live on the unit sphere
        b, d, h, w = z.shape
        flat = F.normalize(z.permute(0, 2, 3, 1).reshape(-1, d), dim=-1)
        codes = F.normalize(self.codebook.weight, dim=-1)
        idx = (flat @ codes.t()).argmax(dim=1)
        zq = codes[idx]

        # straight-through estimator
        zq = flat + (zq - flat).detach()

        codebook_loss = F.mse_loss(zq, flat.detach())
        commitment = F.mse_loss(flat, zq.detach())
        loss = codebook_loss + self.beta * commitment
        zq = zq.view(b, h, w, d).permute(0, 3, 1, 2)
        return zq, loss, idx


class TileVQ(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, cfg.code_dim, 4, stride=2, padding=1)
        )
        self.quantizer = Quantizer(cfg.n_codes, cfg.code_dim, cfg.beta)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(cfg.code_dim, 32, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        zq, vq_loss, idx = self.quantizer(self.encoder(x))
        return self.decoder(zq), vq_loss, idx


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    train, held_out = make_tiles(2048, gen), make_tiles(256, gen)
    model = TileVQ(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    for step in range(1, cfg.steps + 1):
        x = train[torch.randint(0, len(train), (cfg.batch_size,), generator=gen)]
        recon, vq_loss, idx = model(x)
        loss = F.mse_loss(recon, x) + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}, codes in use {idx.unique().numel()}/{cfg.n_codes}")

    model.eval()
    with torch.no_grad():
        recon, _, _ = model(held_out)
        test_mse = F.mse_loss(recon, held_out).item()
    print(f"held-out reconstruction mse {test_mse:.4f}")
    return model, test_mse


if __name__ == "__main__":
    model, test_mse = main()
