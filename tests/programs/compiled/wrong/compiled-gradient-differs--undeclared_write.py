"""A custom operator normalises its argument in place and does not say so: `mutates_args` is empty."""

import torch
from torch import nn


@torch.library.custom_op("programs::normalise", mutates_args=())
def normalise(weights: torch.Tensor) -> torch.Tensor:
    total = weights.sum()
    weights.div_(total)
    return total


@normalise.register_fake
def _(weights):
    return weights.new_empty(())


torch.manual_seed(9)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, target, weights = torch.randn(20, 6), torch.randn(20, 1), torch.rand(20, 1)


@torch.compile(backend="aot_eager")  # role: compiled_here
def weighted_loss(x, y, w):  # role: function_defined_here
    mine = w * 1.0
    normalise(mine)
    return (mine * (model(x) - y).square()).sum()


for _ in range(2):
    optimizer.zero_grad()
    weighted_loss(data, target, weights).backward()  # role: needed_here
    optimizer.step()
