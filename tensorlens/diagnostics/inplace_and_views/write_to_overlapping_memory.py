"""A tensor in which several elements share one place in memory was changed in place.

`expand` and `broadcast_to` repeat a row or a column without copying it: every repetition is the same memory. A change
in place would be applied once for each repetition, or once in all, depending on how the kernel walks through memory, so
PyTorch refuses.

## Fails

```python
import torch

bias = torch.tensor([[1.0], [2.0]])
wide = bias.expand(2, 3)  # view_made_here
wide.mul_(2)  # rejected_here
```

## Fixed

```python
import torch

bias = torch.tensor([[1.0], [2.0]])
wide = bias.expand(2, 3).clone()
wide.mul_(2)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "write-to-overlapping-memory",
    ("rejected_here", "view_made_here"),
    "several elements of {view} are the same place in memory, and {op} would change them",
    "an expanded tensor repeats its source without copying it, so one write would land on many elements",
    "give each element its own memory first: `.clone()` after the `expand`",
    "or change the source before it is expanded",
)
