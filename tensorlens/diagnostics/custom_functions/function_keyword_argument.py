"""`apply` of a custom function was called with a keyword argument.

`apply` passes its arguments on by position, since `backward` returns one gradient for each position. A `forward` that
has keyword arguments cannot be reached this way.

## Fails

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, *, factor):  # function_defined_here
        return value * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient


Scale.apply(torch.ones(2, requires_grad=True), factor=3)  # called_here
```

## Fixed

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, factor):
        ctx.factor = factor
        return value * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


Scale.apply(torch.ones(2, requires_grad=True), 3)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.roles.custom_functions import forward_not_callable

find = rejected(
    "function-keyword-argument",
    (
        "function_defined_here:refused-forward",
        "called_here",
    ),
    "a custom function was called with a keyword argument that it can't pass on",
    "`apply` hands positional arguments to `forward`",
    "pass the argument by position, and let `forward` take it so",
    when=forward_not_callable,
)
