"""The `backward` of a custom function returned a gradient for an argument that is not a tensor.

A number or a flag has no gradient. In its place `backward` returns None; a tensor there shows that the order of the
returned values is not that of the arguments.

## Fails

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, factor):
        return value * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, gradient  # returned_here


scaled = Scale.apply(torch.ones(2, requires_grad=True), 2.0)  # called_here
scaled.sum().backward()  # needed_here
```

## Fixed

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, factor):
        return value * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


scaled = Scale.apply(torch.ones(2, requires_grad=True), 2.0)
scaled.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "custom-function-gradient-for-non-tensor",
    (
        "returned_here",
        "called_here",
        "needed_here:calling",
    ),
    "a `backward` returned a gradient for an argument that is no tensor",
    "{function} handed back {handed}",
    "return None in the place of every argument that is no tensor",
)
