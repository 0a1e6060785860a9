"""Adapt a pretrained tone model to a new microphone with low-rank updates, then fold them into its weights."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

BINS = 32


def make_tones(count, generator, tilt):
    pitch = torch.rand(count, 1, generator=generator)
    grid = torch.linspace(0, 1, BINS)
    spectrum = torch.exp(-((grid - pitch) ** 2) / 0.01) + 0.5 * torch.exp(-((grid - 0.5 * pitch) ** 2) / 0.01)
    spectrum = spectrum * torch.exp(tilt * (grid - 0.5)) + 0.03 * torch.randn(count, BINS, generator=generator)
    if tilt:
        spectrum = spectrum.roll(3, dims=1)
    return spectrum, pitch


def build_base(width=48):
    return nn.Sequential(
        nn.Linear(BINS, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
    )


class LowRankLinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.t() @ self.up.t())

    @torch.no_grad()
    def merged(self):
        self.base.weight += self.scale * (self.up @ self.down)
        self.up.zero_()
        return self.base


def add_adapters(model, rank=4, alpha=8.0):
    for index, layer in enumerate(model):
        if isinstance(layer, nn.Linear):
            model[index] = LowRankLinear(layer, rank, alpha)
    return model


def merge_adapters(model):
    for index, layer in enumerate(model):
        if isinstance(layer, LowRankLinear):
            model[index] = layer.merged()
    return model


def fit(model, x, y, steps, lr, batch=64):
    chosen = [p for p in model.parameters() if p.requires_grad]
    print(f"training {sum(p.numel() for p in chosen)} of {sum(p.numel() for p in model.parameters())} numbers")
    optimizer = torch.optim.AdamW(chosen, lr=lr, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(steps):
        pick = torch.randint(len(x), (batch,))
        loss = F.mse_loss(model(x[pick]), y[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


@torch.no_grad()
def error(model, x, y):
    return F.mse_loss(model(x), y).sqrt().item()


if __name__ == "__main__":
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(40)
    studio_x, studio_y = make_tones(1500, generator, tilt=0.0)
    phone_x, phone_y = make_tones(600, generator, tilt=1.5)
    test_x, test_y = make_tones(300, generator, tilt=1.5)

    base = build_base()
    fit(base, studio_x, studio_y, steps=200, lr=3e-3)
    adapted = add_adapters(copy.deepcopy(base))
    before = error(adapted, test_x, test_y)
    fit(adapted, phone_x, phone_y, steps=200, lr=5e-3)
    after = error(adapted, test_x, test_y)
    with torch.inference_mode():
        reference = adapted(test_x)
    final = merge_adapters(adapted)
    with torch.inference_mode():
        gap = (final(test_x) - reference).abs().max().item()
    print(f"phone error {before:.4f} -> {after:.4f}; merged model differs by {gap:.1e}")
    print(f"studio error of the base model {error(base, studio_x, studio_y):.4f}")
