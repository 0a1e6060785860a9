"""Something that is not a tensor was assigned to `.grad`.

`.grad` is a tensor, or None where there is no gradient. A zero, as a number, is neither: to reset a gradient, assign
None, which is also what `zero_grad()` does.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.sum().backward()
empty = 0.0  # value_made_here
weight.grad = empty  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.sum().backward()
weight.grad = None
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-not-a-tensor",
    ("rejected_here", "value_made_here:plain"),
    "`.grad` was assigned something that is not a tensor",
    "`.grad` is a tensor of the same shape, or None",
    "to reset a gradient, assign None or call `zero_grad()`",
)
