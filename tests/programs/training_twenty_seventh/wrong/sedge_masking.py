"""Masked autoencoder on 16x16 images in 4x4 patches, followed by a look at the reconstruction of hidden patches."""
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    size: int = 16
    patch: int = 4
    width: int = 48
    mask_ratio: float = 0.6
    batch: int = 48
    steps: int = 200
    lr: float = 3e-3

    @property
    def tokens(self):
        return (self.size // self.patch) ** 2


def patchify(x, p):
    b, h, w = x.shape
    return x.view(b, h // p, p, w // p, p).permute(0, 1, 3, 2, 4).reshape(b, -1, p * p)


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def take(x, index):
    return x.gather(1, index[:, :, None].expand(-1, -1, x.shape[2]))


class MaskedAutoencoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        pixels = cfg.patch ** 2
        self.embed = nn.Linear(pixels, cfg.width)
        self.enc_pos = nn.Parameter(0.02 * torch.randn(1, cfg.tokens, cfg.width))
        self.dec_pos = nn.Parameter(0.02 * torch.randn(1, cfg.tokens, cfg.width))
        self.mask_token = nn.Parameter(torch.zeros(1, 1, cfg.width))
        self.encoder = nn.Sequential(Block(cfg.width), nn.LayerNorm(cfg.width))
        self.decoder = nn.Sequential(Block(cfg.width), nn.LayerNorm(cfg.width), nn.Linear(cfg.width, pixels))

    def random_masking(self, x):
        """Keeps a random subset of the tokens; the mask is 1 where a patch is hidden."""
        keep = int(x.shape[1] * (1 - self.cfg.mask_ratio))
        order = torch.rand(x.shape[:2], device=x.device).argsort(1)
        mask = torch.ones(x.shape[:2], device=x.device)
        mask.scatter_(1, order[:, :keep], 0.0)
        return take(x, order[:, :keep]), mask, order

    def decode(self, latent, order):
        hidden = self.mask_token.expand(len(latent), order.shape[1] - latent.shape[1], -1)
        full = torch.cat([latent, hidden], dim=1)
        full = take(full, order)  # back to raster order
        return self.decoder(full + self.dec_pos)

    def forward(self, images):
        target = patchify(images, self.cfg.patch)
        visible, mask, order = self.random_masking(self.embed(target) + self.enc_pos)
        pred = self.decode(self.encoder(visible), order)
        loss = ((pred - target) ** 2).mean(-1)
        return (loss * mask).sum() / mask.sum(), pred, mask


def waves(n, size, gen):
    """Smooth images: a plane wave of random direction, phase and wavelength on a linear ramp."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    a, f, ph, gx, gy = torch.rand(5, n, 1, 1, generator=gen)
    wave = torch.sin((1 + 2 * f) * (x * (6.28 * a).cos() + y * (6.28 * a).sin()) + 6.28 * ph)
    return wave + (gx - 0.5) * x + (gy - 0.5) * y


def main():
    cfg = Config()
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    data, held_out = waves(4096, cfg.size, gen), waves(256, cfg.size, gen)
    model = MaskedAutoencoder(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg.lr, total_steps=cfg.steps)
    for step in range(cfg.steps):
        loss, _, _ = model(data[torch.randint(0, len(data), (cfg.batch,), generator=gen)])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} masked mse {loss.item():.4f}")
    with torch.no_grad():
        val = model(held_out)[0].item()
    print(f"held-out masked mse {val:.4f}, image variance {held_out.var():.4f}")
    return model, val


if __name__ == "__main__":
    model, val = main()
