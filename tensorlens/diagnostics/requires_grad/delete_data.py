"""`del x.data` was called.

A tensor cannot be without data. What is meant is to let go of the tensor, so that its memory can be used again.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
del weight.data  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
del weight
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "delete-data",
    ("rejected_here",),
    "the data of a tensor can't be deleted",
    "a tensor is nothing without its data",
    "delete the tensor itself, `del x`; its memory is freed with the last reference",
)
