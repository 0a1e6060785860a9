"""A backward function returned a gradient whose shape does not fit the input that it belongs to.

The gradient of an input has one value for each of its elements. A custom `backward` has to undo what `forward` did to
the shape: where forward summed over a dimension, backward spreads the gradient over it again; where forward transposed,
backward transposes back. PyTorch checks it because a gradient of a wrong shape would be added wrongly.

## Fails

```python
import torch


class RowMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table):
        return table.mean(dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient / 3  # returned_here


table = torch.ones(2, 3, requires_grad=True)
means = RowMean.apply(table)  # called_here
means.sum().backward()  # needed_here
```

## Fixed

```python
import torch


class RowMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table):
        return table.mean(dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return (gradient / 3).unsqueeze(1).expand(-1, 3)


table = torch.ones(2, 3, requires_grad=True)
means = RowMean.apply(table)
means.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "invalid-gradient-shape",
    (
        "returned_here",
        "called_here",
        "needed_here:calling",
    ),
    "a `backward` returned a gradient whose shape does not fit the input",
    "{function} was given {given} and handed back {handed}",
    "undo what `forward` did to the shape: spread a gradient over what was summed, transpose back what was transposed",
    "`torch.autograd.gradcheck` tests a `backward` against finite differences",
)
