import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    epochs: int = 6
    batch: int = 32
    peak_lr: float = 4e-3
    warmup_share: float = 0.1


def factor(k, warmup, total):
    if k < warmup:
        return (k + 1) / warmup
    t = (k - warmup) / max(1, total - warmup)
    return 0.5 * (1.0 + math.cos(math.pi * min(t, 1.0)))


class Tagger(nn.Module):
    def __init__(self, bands=20, classes=5):
        super().__init__()
        self.conv = nn.Conv1d(bands, 32, 3, padding=1)
        self.out = nn.Linear(32, classes)

    def forward(self, frames):
        return self.out(torch.tanh(self.conv(frames)).mean(-1))


class Trainer:
    def __init__(self, net, loader, cfg):
        self.net, self.loader, self.cfg = net, loader, cfg
        total = cfg.epochs * len(loader)
        warmup = int(cfg.warmup_share * total)
        self.opt = torch.optim.AdamW(net.parameters(), lr=cfg.peak_lr)
        self.sched = torch.optim.lr_scheduler.LambdaLR(
            self.opt, partial(factor, warmup=warmup, total=total))

    def batch(self, x, y):
        self.opt.zero_grad()
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            losses = []
            for x, y in self.loader:
                losses.append(self.batch(x, y))
                self.sched.step()
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")


def main():
    torch.manual_seed(11)
    proto = torch.randn(5, 20, 1)
    y = torch.randint(0, 5, (640,))
    x = proto[y] + 1.5 * torch.randn(640, 20, 24)
    loader = DataLoader(TensorDataset(x, y), batch_size=Config.batch, shuffle=True)
    Trainer(Tagger(), loader, Config()).fit()


if __name__ == "__main__":
    main()
