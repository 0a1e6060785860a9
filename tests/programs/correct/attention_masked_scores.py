"""Attention whose fresh scores are masked in place before the softmax."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, padding):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2)
        scores /= x.shape[-1] ** 0.5
        scores.masked_fill_(padding[:, None, :], float("-inf"))
        return scores.softmax(-1) @ v


torch.manual_seed(16)
attention = Attention(4)
padding = torch.tensor([[False, False, True], [False, False, False]])
x = torch.randn(2, 3, 4)
loss = attention(x, padding).pow(2).mean()
loss.backward()
print(attention.qkv.weight.grad.shape)
