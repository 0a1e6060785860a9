"""Forecaster for mixed machine types: a sparse mixture of small experts reads a window of sensor values."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)


@dataclass
class Config:
    window: int = 16
    width: int = 24
    hidden: int = 12
    experts: int = 4
    active: int = 1
    balance: float = 0.01
    lr: float = 4e-3
    epochs: int = 12


def make_windows(count, window):
    kind = torch.randint(0, 4, (count,))
    t = torch.arange(window + 1) / window
    phase = torch.rand(count, 1) * 2 * math.pi
    freq = torch.tensor([1.0, 2.0, 3.0, 4.0])[kind][:, None]
    sign = torch.tensor([1.0, -1.0, 2.0, -2.0])[kind]
    wave = torch.sin(2 * math.pi * freq * t + phase) + 0.05 * torch.randn(count, window + 1)
    target = sign * wave[:, -1] * wave[:, -2].abs().add(0.5)
    return wave[:, :-1], target


class Expert(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class SparseMixture(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.router = nn.Linear(cfg.width, cfg.experts, bias=False)
        self.experts = nn.ModuleList(Expert(cfg.width, cfg.hidden) for _ in range(cfg.experts))

    def forward(self, x):
        logits = self.router(x)
        top, chosen = logits.topk(self.cfg.active, dim=-1)
        gate = F.softmax(top, dim=-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            row, slot = (chosen == e).nonzero(as_tuple=True)
            if row.numel():
                out = out.index_add(0, row, gate[row, slot, None] * expert(x[row]))
        share = F.one_hot(chosen, self.cfg.experts).float().sum(1).mean(0) / self.cfg.active
        balance = self.cfg.experts * (share * logits.softmax(-1).mean(0)).sum()
        return x + out, balance


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(cfg.window, cfg.width)
        self.norm = nn.LayerNorm(cfg.width)
        self.mixture = SparseMixture(cfg)
        self.head = nn.Linear(cfg.width, 1)

    def forward(self, x):
        h, balance = self.mixture(self.norm(self.embed(x)))
        return self.head(h).squeeze(-1), balance


def train(cfg, model, x, y):
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.01)
    steps = cfg.epochs * math.ceil(len(x) / 128)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    for epoch in range(cfg.epochs):
        for idx in torch.randperm(len(x)).split(128):
            guess, balance = model(x[idx])
            loss = F.smooth_l1_loss(guess, y[idx]) + cfg.balance * balance
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            schedule.step()
    return loss.item()


cfg = Config()
model = Forecaster(cfg)
final = train(cfg, model, *make_windows(2048, cfg.window))
model.eval()
x, y = make_windows(512, cfg.window)
with torch.no_grad():
    guess, balance = model(x)
    error = F.mse_loss(guess, y).item()
print(f"last loss {final:.4f}  test error {error:.4f} (variance {y.var().item():.3f})  balance {balance.item():.3f}")
