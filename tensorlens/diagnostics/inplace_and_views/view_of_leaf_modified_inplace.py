"""A view of a leaf that requires grad was changed in place while gradients were being recorded.

An index, a slice, `view`, `t()` or `reshape` often returns a window onto the same memory. A change through the window
changes the leaf as well, and a leaf must keep the value that its gradient belongs to for as long as changes to it are
recorded. So autograd refuses, just as it refuses a change to the leaf itself.

## Fails

```python
import torch

table = torch.zeros(3, 2, requires_grad=True)  # leaf_made_here
row = table[0]  # view_made_here
row.add_(1.0)  # rejected_here
```

## Fixed

```python
import torch

table = torch.zeros(3, 2, requires_grad=True)
with torch.no_grad():
    row = table[0]
    row.add_(1.0)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "view-of-leaf-modified-inplace",
    ("rejected_here", "view_made_here", "leaf_made_here"),
    "{view} is a view of {leaf}, a leaf that requires grad, and {op} would change both",
    "the change would reach the memory of {leaf}, whose gradient belongs to the value that it was created with",
    "to set or update values of {leaf}, take the view and change it inside `with torch.no_grad():`",
    "if the change is part of the computation, start from a copy: {leaf}`.clone()`",
)
