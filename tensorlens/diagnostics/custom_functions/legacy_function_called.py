"""A custom function written in the style of very old PyTorch was called.

There, `forward` and `backward` were ordinary methods of an object that was made for each call. Today both are static
methods, with `ctx` as their first argument, and the function is run by `apply`.

## Fails

```python
import torch


class Double(torch.autograd.Function):
    def forward(self, value):  # function_defined_here
        return value * 2

    def backward(self, gradient):
        return gradient * 2


Double()(torch.ones(2, requires_grad=True))  # rejected_here
```

## Fixed

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


Double.apply(torch.ones(2, requires_grad=True))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "legacy-function-called",
    (
        "rejected_here",
        "function_defined_here:legacy",
    ),
    "a custom function was called like a module",
    "the methods of a function are static and `forward` is given a context",
    "make `forward` and `backward` static methods and run the function with `.apply(...)`",
)
