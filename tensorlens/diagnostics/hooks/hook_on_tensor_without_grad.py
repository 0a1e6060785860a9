"""A hook was registered on a tensor that does not require grad.

A hook on a tensor is called with the gradient that arrives there in backward. At a tensor without history none arrives:
it is plain data, was detached, or was computed while gradients were not recorded. PyTorch says so at once and does not
let the hook wait in vain.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():  # grad_mode_off_here
    hidden = weight * 2  # graph_cut_here
hidden.register_hook(print)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
hidden.register_hook(print)
hidden.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "hook-on-tensor-without-grad",
    ("rejected_here", "graph_cut_here"),
    "{op} waits for the gradient of a tensor that has no history",
    "no gradient arrives at a tensor that does not require grad, so the hook would never be called",
    "compute the tensor with recording on, from what requires grad",
    "for an input whose gradient is wanted, call `requires_grad_()` on it before the forward pass",
)
