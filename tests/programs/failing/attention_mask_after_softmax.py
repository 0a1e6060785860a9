"""expect: saved-tensor-modified-inplace

Padding is masked out of the attention weights after the softmax, in place.
"""

import math

import torch
from torch import nn


def hide(weights, padding):
    keep = (~padding)[:, None, None, :]
    weights.mul_(keep)  # role: modified_here
    return weights / weights.sum(-1, keepdim=True)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, padding):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = scores.softmax(dim=-1)  # role: saved_here
        mixed = hide(weights, padding) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width=8, heads=2):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x, padding):
        x = x + self.attention(self.norm(x), padding)
        return x + self.mlp(x)


torch.manual_seed(3)
layers = nn.ModuleList([Block(), Block()])
x = torch.randn(2, 5, 8)
padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
for layer in layers:
    x = layer(x, padding)
x.pow(2).mean().backward()  # role: needed_here
