"""A function of the `apply_` family was called on a tensor that requires grad.

`apply_`, `map_` and `map2_` run a Python function on each element and write back what it returns. Autograd cannot see
into that function, so nothing of it can be recorded.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
weight.apply_(lambda value: value * 2)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    weight.mul_(2)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "python-callback-on-requires-grad",
    ("rejected_here", "leaf_made_here"),
    "{op} runs a Python function on the elements of {leaf}, which requires grad",
    "what a Python function does with single values can't be recorded",
    "write it with tensor operations",
    "if no gradient is needed, work on a copy: {leaf}`.detach().clone()`",
)
