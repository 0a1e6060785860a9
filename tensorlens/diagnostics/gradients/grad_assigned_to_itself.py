"""A tensor was assigned to its own `.grad`.

The tensor would be its own gradient, and the two would keep each other alive for ever.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.grad = weight  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.grad = weight.detach().clone()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-assigned-to-itself",
    ("rejected_here",),
    "a tensor was assigned to its own `.grad`",
    "it would be its own gradient, and keep itself alive",
    "assign a copy: `.detach().clone()`",
)
