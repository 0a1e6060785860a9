"""`gradcheck` was given inputs in single precision.

It compares gradients with differences of values that lie very close together. In float32 such differences consist
mostly of rounding, so the check is likely to fail for a correct function.

## Fails

```python
import torch

value = torch.zeros(2, requires_grad=True)  # value_made_here
torch.autograd.gradcheck(lambda x: x * 3, (value,), atol=0.2)  # called_here
```

## Fixed

```python
import torch

value = torch.zeros(2, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(lambda x: x * 3, (value,))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "gradcheck-single-precision",
    ("called_here:given", "value_made_here"),
    "the gradient of {value} is to be checked in single precision",
    "the slope is measured by steps of about 1e-6, which single precision can hardly tell apart",
    "make the input in double precision: `dtype=torch.float64`",
)
