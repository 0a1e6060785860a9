"""Tiny vision transformer: which glyph does the mosaic hold, and in which half of the picture?"""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    image: int = 16
    patch: int = 4
    dim: int = 32
    depth: int = 2
    heads: int = 4
    classes: int = 4
    lr: float = 3e-3
    weight_decay: float = 0.05
    epochs: int = 10
    batch: int = 64


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.norm1, self.norm2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        n_patches = (cfg.image // cfg.patch) ** 2
        self.patchify = nn.Conv2d(1, cfg.dim, cfg.patch, stride=cfg.patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, cfg.dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, n_patches + 1, cfg.dim))
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.classes)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, img):
        x = self.patchify(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def build_optimizer(model, cfg):
    decay, no_decay = [], []
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            decay.append(module.weight)
            no_decay.append(module.bias)
        elif isinstance(module, nn.LayerNorm):
            no_decay += [module.weight, module.bias]
    groups = [
        {"params": decay, "weight_decay": cfg.weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=cfg.lr, betas=(0.9, 0.98))


def make_images(n, cfg, gen):
    """One tile of a 4x4 mosaic carries a glyph; label: glyph (dot or cross) and half (north or south)."""
    cell = cfg.patch
    cross = torch.eye(cell) + torch.eye(cell).flip(1)
    dot = torch.zeros(cell, cell)
    dot[1:3, 1:3] = 2.0
    kind = torch.randint(0, 2, (n,), generator=gen)
    tile = torch.randint(0, 4, (n, 2), generator=gen)
    img = 0.2 * torch.randn(n, 1, cfg.image, cfg.image, generator=gen)
    for i, (k, (ty, tx)) in enumerate(zip(kind.tolist(), tile.tolist())):
        img[i, 0, ty * cell:(ty + 1) * cell, tx * cell:(tx + 1) * cell] += cross if k else dot
    return img, kind * 2 + tile[:, 0] // 2


cfg = Config()
torch.manual_seed(0)
gen = torch.Generator().manual_seed(42)
x, y = make_images(1024, cfg, gen)
x_test, y_test = make_images(512, cfg, gen)
model = TinyViT(cfg)
optimizer = build_optimizer(model, cfg)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, total_steps=cfg.epochs * len(x) // cfg.batch)
for epoch in range(cfg.epochs):
    for idx in torch.randperm(len(x), generator=gen).split(cfg.batch):
        loss = F.cross_entropy(model(x[idx]), y[idx], label_smoothing=0.05)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  test accuracy {accuracy:.3f}")
