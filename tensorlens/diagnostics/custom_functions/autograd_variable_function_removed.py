"""`torch.autograd.variable` was called, an old way to make a tensor.

Since tensors and variables are one, `torch.tensor` makes both.

## Fails

```python
import torch

start = torch.autograd.variable([1.0, 2.0])  # rejected_here
```

## Fixed

```python
import torch

start = torch.tensor([1.0, 2.0])
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "autograd-variable-function-removed",
    ("rejected_here",),
    "`torch.autograd.variable` is an old way to make a tensor",
    "tensors and variables have been one since PyTorch 0.4",
    "use `torch.tensor(...)`",
)
