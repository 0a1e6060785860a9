"""A hook that is to run after a gradient was stored was registered on a computed tensor.

Gradients are stored in leaves only, so at a computed tensor this moment never comes. A plain hook, `register_hook`, is
called with the gradient that passes through.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2  # nonleaf_made_here
hidden.register_post_accumulate_grad_hook(print)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
weight.register_post_accumulate_grad_hook(print)
hidden.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "post-accumulate-hook-on-nonleaf",
    ("rejected_here", "nonleaf_made_here"),
    "{op} waits for a gradient to be stored in {nonleaf}, which is not a leaf",
    "backward stores gradients only in leaves, so the hook would never run",
    "register it on the leaf that the gradient is stored in",
    "to see the gradient that passes through {nonleaf}, use {nonleaf}`.register_hook(...)`",
)
