"""Adapts a tone-response model of one loudspeaker to another with low-rank updates (LoRA).

The base network is fitted on the first loudspeaker, then frozen; each of its linear layers gets
a low-rank update whose second factor starts at zero, so that adaption starts from the base.
"""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

BANDS, WIDTH = 12, 48
BASE_STEPS, ADAPT_STEPS, BATCH = 160, 220, 64


class LowRankLinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0, dropout=0.05):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank
        self.drop = nn.Dropout(dropout)
        self.merged = False

    def forward(self, x):
        out = self.base(x)
        if self.merged:
            return out
        return out + F.linear(F.linear(self.drop(x), self.down), self.up) * self.scale

    @torch.no_grad()
    def merge(self):
        if not self.merged:
            self.base.weight.data += self.scale * (self.up @ self.down)
            self.merged = True


class Speaker:
    def __init__(self, generator, mix=None):
        self.generator = generator
        self.mix = torch.randn(BANDS, BANDS, generator=generator) / math.sqrt(BANDS) if mix is None else mix

    def variant(self, strength):
        change = torch.randn(BANDS, 2, generator=self.generator) @ torch.randn(2, BANDS, generator=self.generator)
        return Speaker(self.generator, self.mix + strength * change / math.sqrt(BANDS))

    def record(self, n):
        signal = torch.randn(n, BANDS, generator=self.generator)
        return signal, torch.tanh(signal @ self.mix)


def build_base():
    return nn.Sequential(
        nn.Linear(BANDS, WIDTH), nn.GELU(),
        nn.Linear(WIDTH, WIDTH), nn.GELU(),
        nn.Linear(WIDTH, BANDS),
    )


def fit(model, parameters, speaker, steps, lr):
    parameters = list(parameters)
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    model.train()
    for step in range(steps):
        signal, response = speaker.record(BATCH)
        loss = F.mse_loss(model(signal), response)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"  step {step:3d}  loss {loss.item():.4f}")
    optimizer.zero_grad(set_to_none=True)


def add_adapters(base, rank):
    adapted = copy.deepcopy(base)
    for position, layer in enumerate(adapted):
        if isinstance(layer, nn.Linear):
            adapted[position] = LowRankLinear(layer, rank)
    return adapted


@torch.no_grad()
def error(model, signal, response):
    model.eval()
    return F.mse_loss(model(signal), response).item()


def main():
    torch.manual_seed(13)
    first = Speaker(torch.Generator().manual_seed(130))
    second = first.variant(strength=0.5)
    test = second.record(400)

    print("base network, first loudspeaker")
    base = build_base()
    fit(base, base.parameters(), first, BASE_STEPS, lr=5e-3)

    print("adapters, second loudspeaker")
    adapted = add_adapters(base, rank=4)
    before = error(adapted, *test)
    fit(adapted, (p for p in adapted.parameters() if p.requires_grad), second, ADAPT_STEPS, lr=8e-3)
    after = error(adapted, *test)

    for layer in adapted:
        if isinstance(layer, LowRankLinear):
            layer.merge()
    print(f"second loudspeaker: base {before:.4f}  adapted {after:.4f}  merged {error(adapted, *test):.4f}")
    return base, adapted, before, after, test


if __name__ == "__main__":
    base, adapted, before, after, test = main()
