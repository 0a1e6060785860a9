"""A tensor was written to from another that lies partly in the same memory.

The write would change elements of the source before they are read, in an order that is not defined. Two slices of one
tensor that are shifted against each other are the common case: a history moved by one place.

## Fails

```python
import torch

history = torch.arange(4.0)
older = history[:-1]  # shared_here
history[1:] = older  # rejected_here
```

## Fixed

```python
import torch

history = torch.arange(4.0)
older = history[:-1].clone()
history[1:] = older
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "partial-memory-overlap",
    ("rejected_here", "shared_here"),
    "{op} would write into memory that it also reads from",
    "the two tensors overlap in part, so elements would change before they are read",
    "read from a copy: `.clone()` of the source",
)
