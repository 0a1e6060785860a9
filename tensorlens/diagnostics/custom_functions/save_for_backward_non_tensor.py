"""`ctx.save_for_backward` was given something that is not a tensor.

It keeps tensors, so that their versions can be checked before they are used. Numbers, shapes and flags are stored as
attributes of `ctx`.

## Fails

```python
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, factor):
        ctx.save_for_backward(value, factor)  # rejected_here
        return value * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


Scale.apply(torch.ones(2, requires_grad=True), 2.0)  # called_here
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


Scale.apply(torch.ones(2, requires_grad=True), 2.0).sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "save-for-backward-non-tensor",
    ("rejected_here:saving", "called_here"),
    "`ctx.save_for_backward()` was given something that is no tensor",
    "it keeps tensors, whose versions are checked before they are used; what it was given is looked at after `forward`",
    "keep numbers, shapes and flags as attributes: `ctx.shape = ...`",
)
