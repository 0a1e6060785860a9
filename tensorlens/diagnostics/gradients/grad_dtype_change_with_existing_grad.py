"""The data type for a gradient was changed while a gradient is there.

`grad_dtype` says in which data type backward stores the gradient of a leaf. A gradient of the old type is there
already, and the next one would be added to it.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.square().sum().backward()  # accumulated_here
weight.grad_dtype = torch.float64  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.square().sum().backward()
weight.grad = None
weight.grad_dtype = torch.float64
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-dtype-change-with-existing-grad",
    ("rejected_here", "accumulated_here"),
    "the data type for a gradient was changed while there is a gradient",
    "the next gradient would be added to one of another data type",
    "reset it first: `.grad = None`",
    "or set `grad_dtype` before the first backward",
)
