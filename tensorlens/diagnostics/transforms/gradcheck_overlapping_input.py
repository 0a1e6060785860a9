"""`gradcheck` was given an input whose elements share memory.

It moves one element at a time by a small step. In an expanded tensor several elements are one place in memory, and
would all move together.

## Fails

```python
import torch

start = torch.ones(1, dtype=torch.float64)
wide = start.expand(3).requires_grad_()  # view_made_here
torch.autograd.gradcheck(lambda x: x * 3, (wide,))  # called_here
```

## Fixed

```python
import torch

start = torch.ones(1, dtype=torch.float64)
wide = start.expand(3).clone().requires_grad_()
torch.autograd.gradcheck(lambda x: x * 3, (wide,))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "gradcheck-overlapping-input",
    ("called_here:given", "view_made_here"),
    "elements of {view} share memory, and {op} has to move them one by one",
    "an expanded dimension has the stride 0: all of it is one place in memory",
    "copy it first: {view}`.clone()`",
)
