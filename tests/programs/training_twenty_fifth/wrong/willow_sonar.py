"""Masked pre-training on unlabelled sensor traces, then fine-tuning with layer-wise learning-rate decay."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

PATCH, N_PATCH = 8, 8


@dataclass
class FinetuneConfig:
    epochs: int = 20
    warmup_epochs: float = 3
    batch: int = 16
    lr: float = 3e-3
    min_lr: float = 1e-5
    layer_decay: float = 0.5
    weight_decay: float = 0.05


class Encoder(nn.Module):
    def __init__(self, dim=32, depth=3):
        super().__init__()
        self.patch_embed = nn.Linear(PATCH, dim)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(N_PATCH, dim))
        self.mask_token = nn.Parameter(torch.zeros(dim))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, mask=None):
        h = self.patch_embed(x.unflatten(-1, (N_PATCH, PATCH)))
        if mask is not None:
            h = torch.where(mask[..., None], self.mask_token, h)
        h = h + self.pos_embed
        for block in self.blocks:
            h = block(h)
        return self.norm(h)


def traces(n, gen):
    """A tone with random phase and loudness; the class is its frequency band."""
    freq = 0.2 + 0.6 * torch.rand(n, 1, generator=gen)
    phase = 2 * math.pi * torch.rand(n, 1, generator=gen)
    x = (0.8 + 0.6 * torch.rand(n, 1, generator=gen)) * torch.sin(freq * torch.arange(PATCH * N_PATCH) + phase)
    return x + 0.5 * torch.randn(x.shape, generator=gen), ((freq[:, 0] - 0.2) / 0.2).long().clamp(max=2)


def pretrain(encoder, gen, steps=240, batch=48):
    decoder = nn.Linear(32, PATCH)
    opt = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for _ in range(steps):
        x, _ = traces(batch, gen)
        mask = torch.rand(batch, N_PATCH, generator=gen).argsort(1) < 3
        loss = F.mse_loss(decoder(encoder(x, mask))[mask], x.unflatten(-1, (N_PATCH, PATCH))[mask])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"pre-training: reconstruction loss {loss.item():.3f}")


def param_groups(encoder, head, cfg):
    depth = len(encoder.blocks)
    stem = [encoder.patch_embed.weight, encoder.patch_embed.bias, encoder.pos_embed]
    members = [stem, *[list(b.parameters()) for b in encoder.blocks]]
    groups = [{"params": m, "lr": cfg.lr * cfg.layer_decay ** (depth + 1 - i)} for i, m in enumerate(members)]
    groups.append({"params": [*encoder.norm.parameters(), *head.parameters()], "lr": cfg.lr})
    return groups


def adjust_learning_rate(optimizer, epoch, cfg):
    """Half-cycle cosine after a linear warm-up; called per iteration with a fractional epoch."""
    if epoch < cfg.warmup_epochs:
        lr = cfg.lr * epoch / cfg.warmup_epochs
    else:
        progress = (epoch - cfg.warmup_epochs) / (cfg.epochs - cfg.warmup_epochs)
        lr = cfg.min_lr + (cfg.lr - cfg.min_lr) * 0.5 * (1 + math.cos(math.pi * progress))
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def main(cfg):
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(22)
    encoder = Encoder()
    pretrain(encoder, gen)
    head = nn.Linear(32, 3)
    optimizer = torch.optim.AdamW(param_groups(encoder, head, cfg), weight_decay=cfg.weight_decay)
    (x, y), (xv, yv) = traces(48, gen), traces(1000, gen)
    iters = math.ceil(len(x) / cfg.batch)
    for epoch in range(cfg.epochs):
        for i, idx in enumerate(torch.randperm(len(x), generator=gen).split(cfg.batch)):
            lr = adjust_learning_rate(optimizer, epoch + i / iters, cfg)
            loss = F.cross_entropy(head(encoder(x[idx]).mean(1)), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            with torch.no_grad():
                acc = (head(encoder(xv).mean(1)).argmax(1) == yv).float().mean().item()
            print(f"epoch {epoch + 1} lr {lr:.2e} loss {loss.item():.3f} val acc {acc:.3f}")


if __name__ == "__main__":
    main(FinetuneConfig())
