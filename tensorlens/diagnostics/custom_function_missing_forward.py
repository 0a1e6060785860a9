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

from tensorlens.diagnostics.refusals import refused

find = refused(
    "custom-function-missing-forward",
    ("called_here",),
    "a custom function was applied that has no `forward`",
    "`apply` runs `forward`, a static method, spelled just so",
    "define it",
)
