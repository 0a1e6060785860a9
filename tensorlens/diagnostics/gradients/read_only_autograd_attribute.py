"""An attribute that autograd keeps itself was assigned.

`grad_fn`, `is_leaf` and `_version` tell how a tensor was made. They follow from the operations and cannot be set. To
take a tensor out of the graph there is `detach()`.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
hidden.grad_fn = None  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
hidden = hidden.detach()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "read-only-autograd-attribute",
    ("rejected_here",),
    "an attribute that autograd keeps itself was assigned",
    "`grad_fn`, `is_leaf` and `_version` tell how a tensor was made, and follow from the operations",
    "to take a tensor out of the graph, use `.detach()`",
)
