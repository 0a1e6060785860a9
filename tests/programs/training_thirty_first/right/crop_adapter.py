"""Yield prediction for a new region by low-rank adapters (Hu et al., 2022) on a network trained for the old region."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

FEATURES = 12


class Region:
    """Weather and soil to yield; regions share most of the relation and differ in one direction of it."""

    def __init__(self, shift, seed):
        self.generator = torch.Generator().manual_seed(seed)
        layout = torch.Generator().manual_seed(41)
        self.mix = torch.randn(FEATURES, 6, generator=layout) / math.sqrt(FEATURES)
        self.turn = shift * torch.randn(FEATURES, 1, generator=layout) @ torch.randn(1, 6, generator=layout) / 6
        self.out = torch.randn(6, 1, generator=layout)

    def batch(self, count):
        x = torch.randn(count, FEATURES, generator=self.generator)
        return x, torch.tanh(x @ (self.mix + self.turn)) @ self.out


class YieldNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.first = nn.Linear(FEATURES, width)
        self.second = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.second(torch.tanh(self.first(x)))))


class AdaptedLinear(nn.Module):
    """A linear layer whose own weight stays fixed, with a trained low-rank term beside it."""

    def __init__(self, linear, rank=3, alpha=6.0):
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + F.linear(F.linear(x, self.down), self.up) * self.scale


def adapt(model, names=("first", "second")):
    model.requires_grad_(False)
    for name in names:
        setattr(model, name, AdaptedLinear(getattr(model, name)))
    return model


def merged(model):
    """A plain network with the low-rank terms added to its weights; the adapted one is left as it is."""
    plain = copy.deepcopy(model)
    for name, layer in list(plain.named_children()):
        if isinstance(layer, AdaptedLinear):
            layer.linear.weight.data.add_(layer.up.data @ layer.down.data, alpha=layer.scale)
            setattr(plain, name, layer.linear)
    return plain


def train(model, region, steps, lr):
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=lr)
    for _ in range(steps):
        x, y = region.batch(64)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


@torch.no_grad()
def error(model, shift):
    x, y = Region(shift, seed=99).batch(500)
    return (F.mse_loss(model(x), y) / y.var()).item()


def main():
    torch.manual_seed(23)
    base = YieldNet()
    train(base, Region(shift=0.0, seed=1), steps=250, lr=5e-3)
    print(f"old region {error(base, 0.0):.3f}   new region, not adapted {error(base, 2.0):.3f}")

    model = adapt(copy.deepcopy(base))
    new_region = Region(shift=2.0, seed=2)
    for part in range(3):
        train(model, new_region, steps=100, lr=1e-2)
        print(f"part {part + 1}  new region {error(model, 2.0):.3f}")

    plain = merged(model)
    x, _ = new_region.batch(100)
    with torch.no_grad():
        gap = (plain(x) - model(x)).abs().max().item()
    print(f"merged: new region {error(plain, 2.0):.3f}, largest gap {gap:.1e}; base, old region {error(base, 0.0):.3f}")
    return base, model, plain


if __name__ == "__main__":
    base, model, plain = main()
