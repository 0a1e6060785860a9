"""`backward()` was called inside a transform of `torch.func`.

Inside `torch.func.grad`, `vmap` and the like, tensors are wrapped, and the transform itself differentiates what the
function returns. A backward pass of one's own in there would have to go through the wrappers, and is refused.

## Fails

```python
import torch


def energy(position):
    total = position.square().sum()
    total.backward()  # rejected_here
    return total


torch.func.grad(energy)(torch.ones(2))  # mode_entered_here
```

## Fixed

```python
import torch


def energy(position):
    return position.square().sum()


force = torch.func.grad(energy)(torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "backward-inside-functorch",
    ("rejected_here", "mode_entered_here"),
    "{op} was called inside a transform of `torch.func`",
    "the transform differentiates what the function returns; the tensors in the function are its own, wrapped",
    "return the value from the function: the transform computes its gradient",
    "for gradients inside the function, use `torch.func.grad` there too",
)
