"""`retain_grad()` was called on a tensor that does not require grad.

`retain_grad` asks backward to keep the gradient that passes through a computed tensor. Through a tensor without history
none will ever pass: it was made from plain data, detached, or computed while gradients were not recorded. The cause is
earlier than this call, at the place where the history was lost or never began.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = (weight * 2).detach()  # graph_cut_here
hidden.retain_grad()  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
hidden.retain_grad()
hidden.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "retain-grad-without-requires-grad",
    ("rejected_here", "graph_cut_here"),
    "{op} asks for the gradient of a tensor that has no history",
    "no gradient passes through a tensor that does not require grad, so there would be none to keep",
    "keep the history: compute the tensor from what requires grad, with recording on",
    "if its gradient is wanted for its own sake, make it a leaf with `requires_grad_()` before it is used",
)
