from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    genes: int = 30
    width: int = 32
    decay: float = 0.01
    tiny: float = 1e-3
    batch: int = 12
    rate: float = 0.02


class Standard(nn.Module):
    def __init__(self, width, settings):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("power", torch.ones(width))
        self.settings = settings

    def forward(self, h):
        return F.batch_norm(h, self.centre, self.power, self.scale, self.shift,
                            self.training, self.settings.decay, self.settings.tiny)


class Expression(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.first = nn.Linear(s.genes, s.width)
        self.norm = Standard(s.width, s)
        self.second = nn.Linear(s.width, 3)

    def forward(self, x):
        return self.second(F.elu(self.norm(self.first(x))))


def tissue(n, genes):
    base = torch.randn(n, genes).exp()
    code = torch.randn(genes, 3)
    return base, (base.log() @ code).argmax(1)


def main():
    torch.manual_seed(41)
    s = Settings()
    x, y = tissue(1000, s.genes)
    model = Expression(s)
    optimizer = torch.optim.ASGD(model.parameters(), lr=s.rate)
    for epoch in range(8):
        model.train()
        for rows in torch.randperm(800).split(s.batch):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            held = F.cross_entropy(model(x[800:]), y[800:])
        print(f"epoch {epoch} train {loss.item():.4f} held-out {held.item():.4f}")


if __name__ == "__main__":
    main()
