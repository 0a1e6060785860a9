"""The programs that are timed: each function makes one, as a function to call again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Workload = Callable[[], object]


def tiny_ops() -> Workload:
    """20,000 ops of one to two microseconds: arithmetic, functions, a view, a reduction; with and without a graph."""
    x, y = torch.ones(4, requires_grad=True), torch.ones(4)

    def run() -> object:
        for _ in range(2_500):
            a = x * 2
            b = a + y
            c = b.sin()
            d = c - a
            e = d.relu()
            f = e.view(2, 2)
            g = f.sum()
            h = torch.exp(y)
        return g, h

    return run


def _training(model: nn.Module, optimizer: Any, loss_of: Callable[[], torch.Tensor], steps: int) -> Workload:
    def run() -> object:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
        return model

    return run


def mlp() -> Workload:
    """200 steps of a small MLP with SGD."""
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, targets = torch.randn(32, 32), torch.randint(0, 10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return _training(model, optimizer, lambda: F.cross_entropy(model(inputs), targets), 200)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attend(self.before(x)).split(width, dim=2)
        q, k, v = (p.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        out: torch.Tensor = x + self.feed(self.after(x))
        return out


class _Gpt(nn.Module):
    def __init__(self, words: int = 256, width: int = 128, layers: int = 4, length: int = 64) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(_Block(width, 4) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        logits: torch.Tensor = self.head(self.norm(self.blocks(x)))
        return logits


def gpt() -> Workload:
    """10 steps of a mini-GPT (4 layers, d=128, sequence 64, batch 4) with AdamW."""
    model = _Gpt()
    tokens = torch.randint(0, 256, (4, 65))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss() -> torch.Tensor:
        logits: torch.Tensor = model(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    return _training(model, optimizer, loss, 10)


def conv() -> Workload:
    """5 steps of a small convolutional net with batch norm."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    images, targets = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return _training(model, optimizer, lambda: F.cross_entropy(model(images), targets), 5)


WORKLOADS: dict[str, Callable[[], Workload]] = {"tiny ops": tiny_ops, "MLP": mlp, "mini-GPT": gpt, "conv net": conv}
