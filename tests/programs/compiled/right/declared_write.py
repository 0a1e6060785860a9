"""The custom operator says what it writes to."""

import torch
from torch import nn


@torch.library.custom_op("programs::count", mutates_args=("seen",))
def count(seen: torch.Tensor) -> torch.Tensor:
    seen.add_(1)
    return seen.clone()


@count.register_fake
def _(seen):
    return torch.empty_like(seen)


torch.manual_seed(8)
model, seen = nn.Linear(6, 1), torch.zeros(1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, target = torch.randn(20, 6), torch.randn(20, 1)


@torch.compile(backend="aot_eager")
def loss_of(x, y):
    count(seen)
    return (model(x) - y).square().mean() / seen.sum()


for _ in range(3):
    optimizer.zero_grad()
    loss_of(data, target).backward()
    optimizer.step()
