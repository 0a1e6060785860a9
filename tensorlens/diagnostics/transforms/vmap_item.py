"""Inside `vmap` a value was taken out of a tensor as a Python number.

The function runs once for the whole batch, so there is no single number: each sample has its own.

## Fails

```python
import torch


def scale(value):
    return value / value.sum().item()  # rejected_here


torch.vmap(scale)(torch.ones(3, 2))  # mode_entered_here
```

## Fixed

```python
import torch


def scale(value):
    return value / value.sum()


torch.vmap(scale)(torch.ones(3, 2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "vmap-item",
    ("rejected_here", "mode_entered_here"),
    "{op} asks for one number while `torch.vmap` computes many at once",
    "inside `torch.vmap` a tensor stands for a whole batch of them, so there is no one number to hand to Python",
    "stay in tensors: leave out {op} and compute with the tensor itself",
    "for a choice, compute both sides and take one with `torch.where`",
)
