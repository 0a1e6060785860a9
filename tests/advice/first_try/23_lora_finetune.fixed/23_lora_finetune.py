import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lora_layers import LoRALinear, lora_modules


class Encoder(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers.append(nn.Sequential(LoRALinear(dim, dim), nn.SiLU(), LoRALinear(dim, dim)))

    def forward(self, x):
        for layer in self.layers:
            x = x + checkpoint(layer, x, use_reentrant=False)
        return x


class Finetuner:
    def __init__(self, dim=16, classes=4):
        self.encoder = Encoder(dim, 3)
        self.head = nn.Linear(dim, classes)
        params = [p for m in lora_modules(self.encoder) for p in (m.A, m.B)]
        self.opt = torch.optim.AdamW(params + list(self.head.parameters()), lr=1e-2)

    def logits(self, x):
        return self.head(self.encoder(x))

    def fit_batch(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.logits(x), y)
        loss.backward()
        self.opt.step()
        for m in lora_modules(self.encoder):
            m.invalidate()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, x, y):
        acc = (self.logits(x).argmax(-1) == y).float().mean().item()
        for m in lora_modules(self.encoder):
            m.invalidate()
        return acc


def make_data(n, dim, classes):
    centers = torch.randn(classes, dim)
    y = torch.randint(0, classes, (n,))
    return centers[y] + 0.8 * torch.randn(n, dim), y


def main():
    torch.manual_seed(1)
    x, y = make_data(320, 16, 4)
    tuner = Finetuner()
    print("start accuracy", round(tuner.accuracy(x, y), 3))
    for epoch in range(4):
        total = 0.0
        for xb, yb in zip(x.split(64), y.split(64)):
            total += tuner.fit_batch(xb, yb)
        print(f"epoch {epoch} loss {total / 5:.4f} acc {tuner.accuracy(x, y):.3f}")


if __name__ == "__main__":
    main()
