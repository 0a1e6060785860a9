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
