"""An optimizer was given a computed tensor.

An optimizer reads the `.grad` of each tensor and changes the tensor in place. Backward stores gradients only in leaves,
so a computed tensor would never be updated. Often it was a leaf one call earlier: `.to(...)`, `.cuda()`, a slice or `*
0.1` after `requires_grad=True` gives a new tensor, computed from the leaf.

## Fails

```python
import torch

start = torch.zeros(3, requires_grad=True) + 0.5  # nonleaf_made_here
optimizer = torch.optim.SGD([start], lr=0.1)  # optimizer_made_here
```

## Fixed

```python
import torch

start = (torch.zeros(3) + 0.5).requires_grad_()
optimizer = torch.optim.SGD([start], lr=0.1)
start.sum().backward()
optimizer.step()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "optimize-nonleaf",
    ("optimizer_made_here", "nonleaf_made_here"),
    "the optimizer was given {nonleaf}, which is not a leaf",
    "backward stores gradients only in leaves, so {nonleaf} would never be updated",
    "ask for gradients last: make, scale and move the values first, then `requires_grad_()`",
    "or cut it off on purpose: {nonleaf}`.detach().requires_grad_()`",
)
