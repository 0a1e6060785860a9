"""`gradcheck` found that the gradients of a function are not those that differences of its values give.

It moves each input by a little, sees how the results change, and compares with what `backward` returns. If they
disagree, the `backward` is wrong; or the inputs are float32, for which the differences are too coarse.

## Fails

```python
import torch


class Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient  # returned_here


value = torch.ones(2, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Triple.apply, (value,))  # called_here
```

## Fixed

```python
import torch


class Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


value = torch.ones(2, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Triple.apply, (value,))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "gradcheck-jacobian-mismatch",
    ("called_here:given", "returned_here:checked"),
    "the gradient that backward computes is not the slope that small steps show",
    "{op} compares the two for each input; they differ by more than its tolerance",
    "correct the formula in `backward`",
    "check in double precision: in float32 the slope itself is inexact",
)
