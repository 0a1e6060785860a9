"""A tensor of another data type was assigned to `.grad`.

A gradient has the data type of its tensor, so that an optimizer can combine the two without converting. It happens when
gradients are averaged or loaded in float32 and the parameters are kept in half precision.

## Fails

```python
import torch

weight = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)  # leaf_made_here
average = torch.zeros(2)  # value_made_here
weight.grad = average  # rejected_here
```

## Fixed

```python
import torch

weight = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
average = torch.zeros(2)
weight.grad = average.to(weight.dtype)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-dtype-mismatch",
    ("rejected_here", "leaf_made_here", "value_made_here"),
    "the gradient assigned to {leaf} has another data type than {leaf}",
    "a gradient has the data type of its tensor, so that an optimizer need not convert",
    "convert it first: `.to(p.dtype)`",
)
