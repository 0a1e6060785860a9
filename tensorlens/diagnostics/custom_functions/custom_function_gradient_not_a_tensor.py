"""The `backward` of a custom function returned something that is neither a tensor nor None.

What it returns goes on to the next formula as the gradient. `.item()`, `float()` and NumPy give values that cannot go
there.

## Fails

```python
import torch


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.sum()

    @staticmethod
    def backward(ctx, gradient):
        return float(gradient)  # returned_here


total = Total.apply(torch.ones(2, requires_grad=True))  # called_here
total.backward()  # needed_here
```

## Fixed

```python
import torch


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.sum()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.expand(2)


total = Total.apply(torch.ones(2, requires_grad=True))
total.backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "custom-function-gradient-not-a-tensor",
    (
        "returned_here",
        "called_here",
        "needed_here:calling",
    ),
    "a `backward` returned something that is no gradient",
    "{function} handed back {handed}: a gradient is a tensor, and None stands for none",
    "return a tensor: leave out `item()`, or compute with tensors throughout",
)
