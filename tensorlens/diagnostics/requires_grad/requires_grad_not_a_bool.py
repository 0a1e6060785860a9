"""Something other than True or False was assigned to `requires_grad`.

The flag is a bool, and PyTorch does not guess what a number, a string or None shall mean.

## Fails

```python
import torch

weight = torch.ones(2)
weight.requires_grad = 1  # rejected_here
```

## Fixed

```python
import torch

weight = torch.ones(2)
weight.requires_grad = True
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "requires-grad-not-a-bool",
    ("rejected_here",),
    "`requires_grad` was assigned something other than True or False",
    "the flag is a bool and takes nothing else",
    "assign True or False, or call `requires_grad_()`",
)
