"""`torch.nn.utils.weight_norm` was used, which keeps a computed weight in the module.

The computed weight is not a leaf: the module cannot be copied with `deepcopy`, and freezing it has no effect. The newer
form, a parametrization, computes the weight when it is read.

## Fails

```python
import torch

layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))  # rejected_here
```

## Fixed

```python
import torch

layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "old-weight-norm-deprecated",
    ("rejected_here",),
    "`torch.nn.utils.weight_norm` keeps a computed weight in the module",
    "such a weight is not a leaf: the module can't be copied, and freezing it has no effect",
    "use `torch.nn.utils.parametrizations.weight_norm`",
)
