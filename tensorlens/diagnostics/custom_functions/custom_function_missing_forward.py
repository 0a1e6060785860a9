"""A custom function was applied that has no `forward`.

A subclass of `torch.autograd.Function` defines `forward` as a static method, spelled just so; `apply` calls it.

## Fails

```python
import torch


class Double(torch.autograd.Function):  # function_defined_here
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


Double.apply(torch.ones(2, requires_grad=True))  # called_here
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
    "custom-function-missing-forward",
    (
        "called_here",
        "function_defined_here:class",
    ),
    "a custom function without a `forward` was called",
    "`apply` runs `forward` and there is none to run",
    "define `forward` as a static method",
)
