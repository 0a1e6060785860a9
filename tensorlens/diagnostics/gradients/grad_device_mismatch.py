"""A tensor on another device was assigned to `.grad`.

A gradient lies where its tensor lies, because an optimizer combines the two on that device. It happens when gradients
are loaded, received or averaged on the CPU.

## Fails

```python
import torch

weight = torch.ones(2, requires_grad=True)  # leaf_made_here
received = torch.zeros(2, device="meta")  # value_made_here
weight.grad = received  # rejected_here
```

## Fixed

```python
import torch

weight = torch.ones(2, requires_grad=True)
received = torch.zeros(2)
weight.grad = received.to(weight.device)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-device-mismatch",
    ("rejected_here", "leaf_made_here", "value_made_here"),
    "the gradient assigned to {leaf} lies on another device than {leaf}",
    "an optimizer combines a tensor and its gradient on the device of the tensor",
    "move it first: `.to(p.device)`",
)
