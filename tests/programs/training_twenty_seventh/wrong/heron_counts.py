"""Fit a small Poisson model of heron sightings on weather covariates, in bfloat16 where the hardware is fast.

One pass over a season is one epoch.  The last year is kept back to choose the number of epochs.
"""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    sites: int = 1600
    covariates: int = 10
    hidden: int = 48
    batch: int = 64
    epochs: int = 12
    lr: float = 0.01
    momentum: float = 0.8
    seed: int = 11


def make_seasons(cfg):
    gen = torch.Generator().manual_seed(cfg.seed)
    x = torch.randn(cfg.sites, cfg.covariates, generator=gen)
    rate = 0.8 + 0.6 * torch.sin(1.5 * x[:, 0]) + 0.4 * x[:, 1] * x[:, 2] - 0.3 * x[:, 3].abs()
    counts = torch.poisson(rate.clamp(-3, 2.5).exp(), generator=gen)
    cut = cfg.sites * 3 // 4
    return (x[:cut], counts[:cut]), (x[cut:], counts[cut:])


class SightingNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(cfg.covariates, cfg.hidden),
            nn.GELU(),
            nn.Linear(cfg.hidden, cfg.hidden),
            nn.GELU(),
        )
        self.rate = nn.Linear(cfg.hidden, 1)

    def forward(self, x):
        return self.rate(self.body(x)).squeeze(-1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = SightingNet(cfg)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.gen = torch.Generator().manual_seed(cfg.seed + 1)

    def batches(self, x, y):
        order = torch.randperm(len(x), generator=self.gen)
        for idx in order.split(self.cfg.batch):
            yield x[idx], y[idx]

    def run_epoch(self, x, y):
        self.model.train()
        total, seen = 0.0, 0
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for bx, by in self.batches(x, y):
                log_rate = self.model(bx)
                # the loss itself is kept in single precision
                loss = F.poisson_nll_loss(log_rate.float(), by)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                total += loss.item() * len(bx)
                seen += len(bx)
        return total / seen

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            log_rate = self.model(x)
        return F.poisson_nll_loss(log_rate.float(), y).item()


def main():
    torch.set_num_threads(1)
    cfg = Settings()
    torch.manual_seed(cfg.seed)
    (train_x, train_y), (held_x, held_y) = make_seasons(cfg)
    trainer = Trainer(cfg)
    history = []
    for epoch in range(cfg.epochs):
        train_loss = trainer.run_epoch(train_x, train_y)
        held_loss = trainer.evaluate(held_x, held_y)
        history.append((train_loss, held_loss))
        print(f"epoch {epoch + 1:2d}  train {train_loss:.4f}  held-out {held_loss:.4f}")
    best = min(range(cfg.epochs), key=lambda e: history[e][1])
    print(f"best epoch: {best + 1}, held-out deviance {history[best][1]:.4f}")
    return trainer, history, train_x, train_y


if __name__ == "__main__":
    trainer, history, train_x, train_y = main()
