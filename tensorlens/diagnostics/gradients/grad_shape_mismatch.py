"""A tensor of another shape was assigned to `.grad`.

`.grad` holds one value for each element of its tensor, in the same layout: an optimizer combines the two element by
element. A shape that would broadcast is refused too.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
step = torch.ones(1, 2)  # value_made_here
weight.grad = step  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
step = torch.ones(2)
weight.grad = step
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-shape-mismatch",
    ("rejected_here", "leaf_made_here", "value_made_here"),
    "the gradient assigned to {leaf} has another shape than {leaf}",
    "an optimizer combines a tensor and its gradient element by element",
    "reshape or reduce the gradient to the shape of {leaf}",
)
