"""A gradient was differentiated again that a function marked as `once_differentiable` had computed.

The mark says that the `backward` of this custom function is not to be recorded: it works with values only. Second
derivatives, as in a gradient penalty, need a `backward` made of operations that are recorded.

## Fails

```python
import torch
from torch.autograd.function import once_differentiable


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value**3

    @staticmethod
    @once_differentiable  # function_defined_here
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        return 3 * value**2 * gradient


value = torch.tensor([2.0], requires_grad=True)
energy = Cube.apply(value).square().sum()  # graph_built_here
(slope,) = torch.autograd.grad(energy, value, create_graph=True)
slope.sum().backward()  # needed_here
```

## Fixed

```python
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value**3

    @staticmethod
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        return 3 * value**2 * gradient


value = torch.tensor([2.0], requires_grad=True)
energy = Cube.apply(value).square().sum()
(slope,) = torch.autograd.grad(energy, value, create_graph=True)
slope.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "once-differentiable",
    (
        "needed_here",
        "function_defined_here:once",
        "graph_built_here:once",
    ),
    "a gradient was differentiated again that is marked as differentiable once",
    "the `backward` of this function works with values only and was not recorded",
    "write the `backward` with operations that are recorded and drop the mark",
    "if no second derivative is needed, compute the first without `create_graph=True`",
)
