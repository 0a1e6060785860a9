import copy
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    length: int = 24
    hidden: int = 48
    steps: int = 80
    batch: int = 32
    lr: float = 3e-3
    decay: float = 0.99
    seed: int = 3


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.time = nn.Linear(1, cfg.hidden)
        self.inp = nn.Linear(cfg.length, cfg.hidden)
        self.mid = nn.Linear(cfg.hidden, cfg.hidden)
        self.out = nn.Linear(cfg.hidden, cfg.length)

    def forward(self, x, t):
        h = torch.nn.functional.silu(self.inp(x) + self.time(t))
        h = h + torch.nn.functional.silu(self.mid(h))
        return self.out(h)


class Averager:
    def __init__(self, model, decay):
        self.decay = decay
        self.module = copy.deepcopy(model).eval()
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for avg, p in zip(self.module.parameters(), model.parameters()):
            avg.lerp_(p, self.decay)


def clean_batch(cfg, gen):
    phase = torch.rand(cfg.batch, 1, generator=gen) * 6.28
    freq = 0.2 + 0.3 * torch.rand(cfg.batch, 1, generator=gen)
    return torch.sin(torch.arange(cfg.length) * freq + phase)


def noised(x, gen):
    t = torch.rand(len(x), 1, generator=gen)
    eps = torch.randn(x.shape, generator=gen)
    return (1 - t).sqrt() * x + t.sqrt() * eps, t, eps


@torch.no_grad()
def evaluate(net, cfg):
    gen = torch.Generator().manual_seed(1000)
    total = 0.0
    for _ in range(4):
        xt, t, eps = noised(clean_batch(cfg, gen), gen)
        total += (net(xt, t) - eps).square().mean().item()
    return total / 4


def main(cfg):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    model = Denoiser(cfg)
    averager = Averager(model, cfg.decay)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for step in range(cfg.steps):
        xt, t, eps = noised(clean_batch(cfg, gen), gen)
        loss = (model(xt, t) - eps).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averager.update(model)
        if step % 20 == 19:
            print(f"step {step + 1:3d} loss {loss.item():.4f}")
    print(f"raw {evaluate(model, cfg):.4f} averaged {evaluate(averager.module, cfg):.4f}")
    return model, averager


if __name__ == "__main__":
    main(Config())
