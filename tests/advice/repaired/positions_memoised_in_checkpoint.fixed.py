"""expect: checkpoint-different-number-saved

A positional table is computed on first use and memoised: the recomputation finds it in the memo.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Positions:
    def __init__(self, scale):
        self.scale = scale
        self.tables = {}

    def __call__(self, length):
        steps = torch.arange(length, dtype=torch.float)
        return (steps[:, None] * self.scale).sin()


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.mix = nn.Linear(width, width)
        self.positions = Positions(self.scale)

    def forward(self, x):
        return torch.tanh(self.mix(x + self.positions(x.shape[0])))


torch.manual_seed(6)
layers = nn.ModuleList([Layer(4), Layer(4)])
x = torch.randn(5, 4)
for layer in layers:
    x = checkpoint(layer, x, use_reentrant=False)  # role: called_here
loss = x.square().mean()
loss.backward()  # role: needed_here
