import math

import torch
from torch import nn


class LowRank(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * nn.functional.linear(nn.functional.linear(x, self.down), self.up)


def inject(module, rank):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LowRank(child, rank))
        else:
            inject(child, rank)


def fresh_model():
    return nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 3))


def domain(n, rotation, gen):
    x = torch.randn(n, 8, generator=gen)
    angle = torch.tensor(rotation)
    first = angle.cos() * x[:, 0] - angle.sin() * x[:, 1]
    second = angle.sin() * x[:, 0] + angle.cos() * x[:, 1]
    return x, (first > 0).long() + (second > 0.3).long()


def train(model, data, lr, steps):
    x, y = data
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=0.0)
    for step in range(steps):
        rows = torch.randint(0, len(x), (40,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"  step {step + 1} loss {loss.item():.4f}")


def accuracy(model, data):
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


torch.manual_seed(81)
gen = torch.Generator().manual_seed(81)
model = fresh_model()
train(model, domain(400, 0.0, gen), 8e-3, 60)
shifted = domain(400, 0.8, gen)
print(f"before adaptation {accuracy(model, shifted):.3f}")
model.requires_grad_(False)
inject(model, rank=4)
print(f"after injection {accuracy(model, shifted):.3f}")
train(model, shifted, 8e-3, 60)
print(f"after adaptation {accuracy(model, shifted):.3f}")
