"""A hook for the gradients of several tensors was given one that does not require grad.

The hook waits for the gradients of all of them. One of them will never have any.

## Fails

```python
import torch

weight = torch.ones(3, requires_grad=True)
shift = torch.zeros(3)  # leaf_made_here
torch.autograd.graph.register_multi_grad_hook((weight, shift), print)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.ones(3, requires_grad=True)
shift = torch.zeros(3, requires_grad=True)
torch.autograd.graph.register_multi_grad_hook((weight, shift), print)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "multi-grad-hook-without-grad",
    ("rejected_here", "leaf_made_here:never"),
    "a hook was to wait for the gradient of {leaf}, which does not require grad",
    "no backward pass would ever bring it",
    "leave it out, or let it require grad",
)
