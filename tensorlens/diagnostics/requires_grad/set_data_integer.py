"""Integers were assigned to the `.data` of a tensor that requires grad.

A tensor that requires grad has to stay one that can be differentiated: floating point or complex.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
levels = torch.tensor([3, 4])  # value_made_here
weight.data = levels  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
levels = torch.tensor([3, 4])
weight.data = levels.float()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "set-data-integer",
    ("rejected_here", "leaf_made_here", "value_made_here"),
    "{leaf} requires grad and was given integers as its `.data`",
    "only floating point and complex values can be differentiated",
    "convert the values first: `.to(p.dtype)`",
)
