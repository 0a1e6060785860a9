"""A leaf that requires grad was changed in place while gradients were being recorded.

A leaf is where the graph begins: its gradient belongs to the value that it had when the graph was recorded. A change in
place, recorded, would make the tensor the result of an operation on itself, and the leaf whose gradient was asked for
would be gone. So autograd refuses. Under `no_grad` the same change is allowed: it is not part of any graph, and this is
how optimizers update parameters.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
weight.mul_(0.5)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    weight.mul_(0.5)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "leaf-modified-inplace",
    ("rejected_here", "leaf_made_here"),
    "{leaf} is a leaf that requires grad, and {op} would change it in place",
    "recorded, the change would make {leaf} the result of an operation, and its gradient would have nowhere to go",
    "to set or update its values, change it inside `with torch.no_grad():`",
    "if the change is part of the computation, use the operation that makes a new tensor",
)
