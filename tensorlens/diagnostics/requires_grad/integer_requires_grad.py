"""A tensor of integers or booleans was asked to require grad.

A gradient says how a result changes when a value moves a little. Integers and booleans cannot move a little, so only
floating point and complex tensors can require grad. Often the data type came by itself: `torch.tensor([1, 2])` and
`torch.arange(3)` make integers, because the numbers in them are written without a point.

## Fails

```python
import torch

steps = torch.arange(4)  # value_made_here
steps.requires_grad_()  # rejected_here
```

## Fixed

```python
import torch

steps = torch.arange(4, dtype=torch.float32)
steps.requires_grad_()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "integer-requires-grad",
    ("rejected_here", "value_made_here"),
    "{op} asks for gradients of integers or booleans",
    "a gradient needs values that can change by a little: a floating point or complex dtype",
    "make it floating point: `dtype=torch.float32`, or numbers written with a point",
    "labels and indices stay integers: they need no gradient",
)
