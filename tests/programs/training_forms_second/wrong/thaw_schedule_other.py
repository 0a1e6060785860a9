import math

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(33)


class CosineRates:
    def __init__(self, optimizer, total, warmup=10):
        self.entries = [(g, g["lr"]) for g in optimizer.param_groups]
        self.total, self.warmup = total, warmup
        self.now = 0

    def factor(self):
        if self.now < self.warmup:
            return (self.now + 1) / self.warmup
        part = (self.now - self.warmup) / (self.total - self.warmup)
        return 0.5 * (1 + math.cos(math.pi * part))

    def advance(self):
        f = self.factor()
        for group, base in self.entries:
            group["lr"] = base * f
        self.now += 1


class LeafNet(nn.Module):
    def __init__(self, species=5):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten())
        self.head = nn.Linear(64, species)

    def forward(self, x):
        return self.head(self.body(x))


def thaw(model, optimizer, rates, lr):
    model.body.requires_grad_(True)
    optimizer.add_param_group({"params": list(model.body.parameters()), "lr": lr})


def leaves(count=300, side=12, species=5):
    y = torch.randint(species, (count,))
    shape = torch.randn(species, 1, side, side)
    return shape[y] + 0.8 * torch.randn(count, 1, side, side), y


x, y = leaves()
model = LeafNet()
model.body.requires_grad_(False)
optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-2)
epochs, size = 12, 30
rates = CosineRates(optimizer, total=epochs * len(x) // size)

for epoch in range(epochs):
    if epoch == 3:
        thaw(model, optimizer, rates, lr=4e-3)
    for i in torch.randperm(len(x)).split(size):
        rates.advance()
        loss = F.cross_entropy(model(x[i]), y[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1} loss {loss.item():.4f}")
with torch.no_grad():
    print("fit", F.cross_entropy(model(x), y).item())
