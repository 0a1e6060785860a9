"""`resize`, without the underscore, was used to change a tensor's shape.

It is an old name for a reshape that is recorded.

## Fails

```python
import torch

weight = torch.ones(4, requires_grad=True)
square = weight.resize(2, 2)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.ones(4, requires_grad=True)
square = weight.reshape(2, 2)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "non-inplace-resize-deprecated",
    ("rejected_here",),
    "`resize()` is an old name for a reshape",
    "it gives the same elements in another shape, as `reshape` does",
    "use `reshape(...)`",
)
