"""Keyword spotting on synthetic tones, mixed precision with gradient clipping."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast

torch.set_num_threads(1)

KEYWORDS = {"yes": (6, 14), "no": (14, 6), "stop": (10, 10), "go": (5, 18)}


def synth(count, generator, length=256):
    t = torch.linspace(0, 1, length)
    labels = torch.randint(len(KEYWORDS), (count,), generator=generator)
    bands = torch.tensor(list(KEYWORDS.values())).float()
    start, end = bands[labels].unbind(1)
    phase = 2 * math.pi * (start[:, None] * t + 0.5 * (end - start)[:, None] * t ** 2)
    offset = 2 * math.pi * torch.rand(count, 1, generator=generator)
    wave = torch.sin(phase + offset) + 0.3 * torch.randn(count, length, generator=generator)
    return wave.unsqueeze(1), labels


class SpotNet(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.front = nn.Conv1d(1, width, 31, stride=4, padding=15)
        self.mid = nn.Conv1d(width, 2 * width, 9, stride=2, padding=4)
        self.head = nn.Linear(2 * width * 8, classes)

    def forward(self, x):
        x = F.relu(self.front(x))
        x = F.relu(self.mid(x))
        x = F.adaptive_avg_pool1d(x, 8).flatten(1)
        return self.head(x)


class Trainer:
    def __init__(self, model, args):
        self.model = model
        self.args = args
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
        self.scaler = GradScaler("cpu", init_scale=2.0 ** 14)
        self.norms = []

    def step(self, wave, label):
        self.optimizer.zero_grad(set_to_none=True)
        with autocast("cpu", dtype=torch.bfloat16):
            logits = self.model(wave)
        loss = F.cross_entropy(logits.float(), label)
        self.scaler.scale(loss).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.norms.append(norm.item())
        return loss.item()

    @torch.no_grad()
    def accuracy(self, wave, label):
        self.model.eval()
        with autocast("cpu", dtype=torch.bfloat16):
            hits = (self.model(wave).argmax(1) == label).float().mean().item()
        self.model.train()
        return hits


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args(argv)
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    train, test = synth(480, generator), synth(160, generator)
    trainer = Trainer(SpotNet(len(KEYWORDS)), args)
    for epoch in range(args.epochs):
        losses = []
        for idx in torch.randperm(480).split(32):
            losses.append(trainer.step(train[0][idx], train[1][idx]))
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} test acc {trainer.accuracy(*test):.3f}")
    acc = trainer.accuracy(*test)
    print("keyword accuracy", round(acc, 3))
    return trainer, acc


if __name__ == "__main__":
    trainer, acc = main([])
