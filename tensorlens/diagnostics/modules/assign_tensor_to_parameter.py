"""A plain tensor was assigned to a module's attribute that is registered as a parameter.

The module keeps a list of its parameters: for `parameters()`, for `state_dict()`, for moving to a device. A plain
tensor under the same name would vanish from it, and an optimizer would go on updating the old one. So the module takes
only a `Parameter` or None. What is usually meant is to change the values of the parameter that is there.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 2)
smaller = layer.weight * 0.5  # value_made_here
layer.weight = smaller  # rejected_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 2)
with torch.no_grad():
    layer.weight.mul_(0.5)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "assign-tensor-to-parameter",
    ("rejected_here", "value_made_here"),
    "a plain tensor was assigned where a module has a parameter",
    "the tensor is not a `Parameter`: the module would lose a parameter, and an optimizer would go on with the old one",
    "to change the values, write into the parameter: `with torch.no_grad(): p.copy_(...)`",
    "to replace it, wrap the values, `nn.Parameter(values.detach())`, before the optimizer is made",
)
