"""Low-rank adapters on a frozen language model: trained on a new style, then merged into the base weights."""
import copy
import math

import torch
from torch import nn
import torch.nn.functional as F

VOCAB, LENGTH, DIM = 30, 10, 32


def sample_style(count, stride, generator):
    tokens = torch.randint(0, VOCAB, (count, LENGTH), generator=generator)
    for t in range(1, LENGTH):
        keep = torch.rand(count, generator=generator) < 0.9
        tokens[:, t] = torch.where(keep, (tokens[:, t - 1] + stride) % VOCAB, tokens[:, t])
    return tokens


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    """The output layer is the embedding table."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, DIM))
        self.block = Block(DIM)
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        nn.init.normal_(self.embed.weight, std=0.2)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens) + self.position[: tokens.shape[1]]
        return self.head(self.norm(self.block(x)))


class LowRank(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.a), self.b)

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.b @ self.a
        return self.base


def add_adapters(model):
    model.requires_grad_(False)
    for name in ["qkv", "proj", "up", "down"]:
        setattr(model.block, name, LowRank(getattr(model.block, name)))
    return [p for p in model.parameters() if p.requires_grad]


def merge_adapters(model):
    merged = copy.deepcopy(model)
    for name, child in list(merged.block.named_children()):
        if isinstance(child, LowRank):
            setattr(merged.block, name, child.merge())
    return merged


def lm_loss(model, tokens):
    return F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def fit(model, parameters, stride, steps, lr, generator):
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    for step in range(1, steps + 1):
        loss = lm_loss(model, sample_style(24, stride, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"  step {step:3d}  loss {loss.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(51)
    generator = torch.Generator().manual_seed(52)
    model = LanguageModel()
    print("pretraining")
    fit(model, model.parameters(), 3, 75, 1e-2, generator)
    adapters = add_adapters(model)
    print(f"adapters: {sum(p.numel() for p in adapters)} numbers")
    fit(model, adapters, 7, 75, 2e-2, generator)
    merged = merge_adapters(model)
    with torch.no_grad():
        tokens = sample_style(50, 7, generator)
        gap = (merged(tokens) - model(tokens)).abs().max().item()
        print(f"new style: loss {lm_loss(merged, tokens).item():.3f}, gap after merging {gap:.1e}")
