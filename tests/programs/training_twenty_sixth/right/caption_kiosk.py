"""Match two views of a scene with a large-batch contrastive loss, in chunks that fit into little memory."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    dim_image: int = 24
    dim_text: int = 16
    dim_shared: int = 12
    batch: int = 256
    chunk: int = 32
    steps: int = 60
    lr: float = 3e-3
    seed: int = 2


class Tower(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, n_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class PairLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        logits = self.log_scale.exp() * a @ b.T
        target = torch.arange(len(a))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


def scenes(n, cfg, g, maps):
    latent = torch.randn(n, 8, generator=g)
    image = torch.tanh(latent @ maps[0]) + 0.1 * torch.randn(n, cfg.dim_image, generator=g)
    text = torch.tanh(latent @ maps[1]) + 0.1 * torch.randn(n, cfg.dim_text, generator=g)
    return image, text


@torch.no_grad()
def embed(tower, x, chunk):
    return torch.cat([tower(part) for part in x.split(chunk)])


def replay(tower, x, grad, chunk):
    """Run the tower again chunk by chunk and push the stored gradient of each embedding through it."""
    for part, part_grad in zip(x.split(chunk), grad.split(chunk)):
        tower(part).backward(part_grad)


def training_step(image_tower, text_tower, criterion, image, text, chunk):
    za = embed(image_tower, image, chunk).requires_grad_()
    zb = embed(text_tower, text, chunk).requires_grad_()
    loss = criterion(za, zb)
    loss.backward()
    replay(image_tower, image, za.grad, chunk)
    replay(text_tower, text, zb.grad, chunk)
    return loss.detach()


def main():
    cfg = Settings()
    torch.manual_seed(cfg.seed)
    g = torch.Generator().manual_seed(cfg.seed)
    maps = torch.randn(8, cfg.dim_image, generator=g) / 3, torch.randn(8, cfg.dim_text, generator=g) / 3
    image_tower, text_tower = Tower(cfg.dim_image, cfg.dim_shared), Tower(cfg.dim_text, cfg.dim_shared)
    criterion = PairLoss()
    modules = nn.ModuleList([image_tower, text_tower, criterion])
    opt = torch.optim.AdamW(modules.parameters(), lr=cfg.lr, weight_decay=0.0)
    test_image, test_text = scenes(400, cfg, g, maps)

    for step in range(cfg.steps):
        image, text = scenes(cfg.batch, cfg, g, maps)
        opt.zero_grad()
        loss = training_step(image_tower, text_tower, criterion, image, text, cfg.chunk)
        opt.step()
        if step % 10 == 9:
            sim = embed(image_tower, test_image, 100) @ embed(text_tower, test_text, 100).T
            hit = (sim.argmax(1) == torch.arange(len(sim))).float().mean().item()
            print(f"step {step + 1:3d}  loss {loss:.3f}  top-1 retrieval {hit:.3f}")


if __name__ == "__main__":
    main()
