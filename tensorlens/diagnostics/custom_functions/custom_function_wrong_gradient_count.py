"""The `backward` of a custom function returned another number of gradients than `forward` takes arguments.

`backward` returns one value for each argument of `forward`, in order, and None for those that have no gradient, such as
numbers and flags.

## Fails

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, factor):  # function_defined_here
        ctx.factor = factor
        return value * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor  # returned_here


weight = torch.tensor([1.0, 2.0], requires_grad=True)
scaled = Scale.apply(weight, 3)  # called_here
scaled.sum().backward()  # needed_here
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


weight = torch.tensor([1.0, 2.0], requires_grad=True)
scaled = Scale.apply(weight, 3)
scaled.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "custom-function-wrong-gradient-count",
    (
        "returned_here",
        "function_defined_here:forward",
        "called_here",
        "needed_here:calling",
    ),
    "a `backward` returned another number of gradients than `forward` takes arguments",
    "{function} handed back {handed}: there is one gradient for each argument of `forward`, in order",
    "return one value for each argument, None for those that have no gradient, such as numbers and flags",
)
