"""Inside `vmap` a condition depends on a value of the batch.

The function runs once for the whole batch, and `if` can take one way only, while samples may differ. `torch.where`
computes both ways and chooses for each sample.

## Fails

```python
import torch


def fold(value):
    return value if value.sum() > 0 else -value  # rejected_here


torch.vmap(fold)(torch.ones(3, 2))  # mode_entered_here
```

## Fixed

```python
import torch


def fold(value):
    return torch.where(value.sum() > 0, value, -value)


torch.vmap(fold)(torch.ones(3, 2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "vmap-data-dependent-control-flow",
    ("rejected_here", "mode_entered_here"),
    "a choice in Python depends on a tensor that stands for a whole batch",
    "inside `torch.vmap` the answer may differ from one element to the next, and Python can go one way only",
    "compute both sides and take one with `torch.where`",
)
