from copy import copy

import torch
from torch import nn
import torch.nn.functional as F


class Wide(nn.Module):
    def __init__(self, features=20, width=128):
        super().__init__()
        self.up = nn.Linear(features, width)
        self.down = nn.Linear(width, 3)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


class EarlyStop:
    def __init__(self):
        self.record = {"loss": float("inf"), "epoch": -1, "model": None}

    def __call__(self, model, loss, epoch):
        if loss < self.record["loss"]:
            self.record.update(loss=loss, epoch=epoch, model=copy(model))


def table(n, rule, flip):
    x = torch.randn(n, 20)
    y = (x @ rule).argmax(1)
    flipped = torch.rand(n) < flip
    return x, torch.where(flipped, torch.randint(0, 3, (n,)), y)


@torch.no_grad()
def measure(model, x, y):
    return F.cross_entropy(model(x), y).item()


def main():
    torch.manual_seed(22)
    rule = torch.randn(20, 3)
    x, y = table(160, rule, 0.3)
    vx, vy = table(400, rule, 0.3)
    tx, ty = table(1000, rule, 0.3)
    model, keep = Wide(), EarlyStop()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(40):
        for part in torch.randperm(160).split(32):
            loss = F.cross_entropy(model(x[part]), y[part])
            opt.zero_grad()
            loss.backward()
            opt.step()
        value = measure(model, vx, vy)
        keep(model, value, epoch)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} train {loss.item():.4f} valid {value:.4f}")
    best = keep.record
    print(f"best epoch {best['epoch'] + 1} valid {best['loss']:.4f}")
    print(f"test loss {measure(best['model'], tx, ty):.4f}")


main()
