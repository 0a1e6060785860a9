import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 24
    dim: int = 24
    width: int = 48
    lr: float = 0.2
    max_norm: float = 0.5
    warmup: int = 10
    steps: int = 50


class Melody(nn.Module):
    def __init__(self, cfg, pretrained):
        super().__init__()
        self.notes = nn.Embedding.from_pretrained(pretrained, freeze=True)
        self.rnn = nn.RNN(cfg.dim, cfg.width, nonlinearity="relu", batch_first=True)
        nn.init.eye_(self.rnn.weight_hh_l0)
        self.out = nn.Linear(cfg.width, cfg.vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.notes(ids))
        return self.out(h)


class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.params = filter(lambda p: p.requires_grad, model.parameters())
        self.optimizer = torch.optim.SGD(self.params, lr=cfg.lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.rate)

    def rate(self, step):
        if step < self.cfg.warmup:
            return (step + 1) / self.cfg.warmup
        progress = (step - self.cfg.warmup) / max(1, self.cfg.steps - self.cfg.warmup)
        return 0.5 * (1 + math.cos(math.pi * progress))

    def step(self, seq):
        self.model.train()
        logits = self.model(seq[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, self.cfg.vocab), seq[:, 1:].reshape(-1))
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.params, self.cfg.max_norm)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


def make_melodies(cfg, n=128, length=20):
    root = torch.randint(0, cfg.vocab, (n, 1))
    interval = torch.tensor([2, 2, 1, 2, 2, 2, 1]).repeat(3)[:length].cumsum(0)
    direction = torch.randint(0, 2, (n, 1)) * 2 - 1
    return (root + direction * interval) % cfg.vocab


def main():
    torch.manual_seed(0)
    cfg = Config()
    data = make_melodies(cfg)
    angles = torch.arange(cfg.vocab)[:, None] * torch.arange(1, cfg.dim // 2 + 1) * (2 * math.pi / cfg.vocab)
    model = Melody(cfg, torch.cat([angles.sin(), angles.cos()], dim=1))
    trainer = Trainer(model, cfg)
    history = []
    for step in range(cfg.steps):
        history.append(trainer.step(data[torch.randint(0, len(data), (32,))]))
        if step % 10 == 0:
            print(f"step {step} loss {history[-1]:.4f} lr {trainer.schedule.get_last_lr()[0]:.3f}")
    return trainer, history


if __name__ == "__main__":
    trainer, history = main()
