"""A custom function changed an input in place, declared it with `mark_dirty`, and did not return it.

What is marked as dirty becomes a result of the function: its history is then that of the function. So it has to be
among what `forward` returns.

## Fails

```python
import torch


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.mark_dirty(value.add_(1))  # modified_here
        return value * 1  # returned_here

    @staticmethod
    def backward(ctx, gradient):
        return gradient


Shift.apply(torch.ones(2, requires_grad=True) * 2)  # called_here
```

## Fixed

```python
import torch


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.mark_dirty(value.add_(1))
        return value

    @staticmethod
    def backward(ctx, gradient):
        return gradient


Shift.apply(torch.ones(2, requires_grad=True) * 2)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "mark-dirty-not-returned",
    (
        "returned_here:forward",
        "modified_here:input",
        "called_here",
    ),
    "a `forward` declared an input as changed in place and did not return it",
    "what is marked as dirty takes the place of the input in the graph, so it has to be a result",
    "return the very tensor that was marked, or don't change the input in place",
)
