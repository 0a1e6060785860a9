"""A custom function changed a leaf that requires grad in place and declared it with `mark_dirty`.

What `mark_dirty` names becomes the result of the function. A leaf cannot become a result: it would no longer be where
the graph begins, and its gradient would have nowhere to be stored.

## Fails

```python
import torch


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.mark_dirty(value)  # function_defined_here
        return value.mul_(0.5)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.5


weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
Halve.apply(weight)  # called_here
```

## Fixed

```python
import torch


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.mark_dirty(value)
        return value.mul_(0.5)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.5


weight = torch.tensor([1.0, 2.0], requires_grad=True)
Halve.apply(weight.clone()).sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "leaf-marked-dirty-in-custom-function",
    (
        "called_here",
        "leaf_made_here",
        "function_defined_here:dirty",
    ),
    "a custom function changes a leaf in place",
    "{leaf} is a leaf that requires grad: as a result of a function it could not be one any more",
    "pass a copy: {leaf}`.clone()`",
    "compute a new tensor in `forward` and drop the mark",
)
