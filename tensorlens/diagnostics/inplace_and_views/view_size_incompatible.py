"""`view` was asked for a shape that cannot be had without copying.

A view is another way to walk through the same memory, in regular steps. After a transpose or a permutation the elements
lie in another order, and no regular step gives the shape that is wanted. `reshape` copies in that case; `contiguous`
copies beforehand.

## Fails

```python
import torch

columns = torch.arange(6.0).reshape(2, 3).t()  # view_made_here
line = columns.view(6)  # rejected_here
```

## Fixed

```python
import torch

columns = torch.arange(6.0).reshape(2, 3).t()
line = columns.reshape(6)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "view-size-incompatible",
    ("rejected_here", "view_made_here"),
    "{op} can't give {view} this shape without copying it",
    "the elements of {view} don't lie in memory in the order that the new shape needs",
    "use `reshape`: it copies where it has to",
    "or copy first, with `contiguous()`, if a view of that copy is wanted",
)
