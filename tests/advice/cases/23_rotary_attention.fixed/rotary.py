"""Rotary position encoding with learnable frequencies."""
import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self, dim, base=100.0):
        super().__init__()
        steps = torch.arange(0, dim, 2).float() / dim
        self.freqs = nn.Parameter(base ** -steps)

    def angles(self, length):
        positions = torch.arange(length).float()
        return torch.outer(positions, self.freqs)

    def forward(self, x):
        angle = self.angles(x.size(1))
        even, odd = x[..., 0::2], x[..., 1::2]
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
