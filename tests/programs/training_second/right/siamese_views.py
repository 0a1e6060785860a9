from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Recipe:
    inputs: int = 16
    width: int = 32
    code: int = 16
    steps: int = 80
    batch: int = 64
    lr: float = 0.05
    noise: float = 0.4


class SiameseNet(nn.Module):
    def __init__(self, r):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(r.inputs, r.width, bias=False),
            nn.BatchNorm1d(r.width),
            nn.SiLU(),
            nn.Linear(r.width, r.code, bias=False),
            nn.BatchNorm1d(r.code, affine=False),
        )
        self.predict = nn.Sequential(
            nn.Linear(r.code, r.code // 2, bias=False),
            nn.BatchNorm1d(r.code // 2),
            nn.SiLU(),
            nn.Linear(r.code // 2, r.code),
        )

    def forward(self, a, b):
        za, zb = self.encode(a), self.encode(b)
        pa, pb = self.predict(za), self.predict(zb)
        return -(agreement(pa, zb.detach()) + agreement(pb, za.detach())) / 2


def agreement(p, z):
    return F.cosine_similarity(p, z, dim=-1).mean()


def views(centres, r):
    kind = torch.randint(0, len(centres), (r.batch,))
    base = centres[kind] + 0.3 * torch.randn(r.batch, r.inputs)
    first, second = (base + r.noise * torch.randn(r.batch, r.inputs) for _ in range(2))
    return first, second, kind


def neighbour_accuracy(model, centres, r):
    model.eval()
    with torch.no_grad():
        x, _, kind = views(centres, r)
        z = F.normalize(model.encode(x), dim=1)
        similarity = (z @ z.T).fill_diagonal_(-2.0)
    return (kind[similarity.argmax(1)] == kind).float().mean().item()


def main():
    torch.manual_seed(44)
    recipe = Recipe()
    centres = torch.randn(6, recipe.inputs)
    model = SiameseNet(recipe)
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.lr, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.steps)
    for step in range(recipe.steps):
        first, second, _ = views(centres, recipe)
        loss = model(first, second)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"nearest neighbour accuracy {neighbour_accuracy(model, centres, recipe):.3f}")


if __name__ == "__main__":
    main()
