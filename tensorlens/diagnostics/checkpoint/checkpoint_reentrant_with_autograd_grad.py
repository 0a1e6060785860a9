"""`autograd.grad`, or `backward(inputs=...)`, was used with a checkpoint of the old kind.

With `use_reentrant=True` a checkpoint runs a whole backward pass inside backward, which stores gradients in `.grad` and
knows nothing of the inputs that were asked for.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(torch.cos, weight, use_reentrant=True)  # called_here
torch.autograd.grad(wave.sum(), weight)  # needed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(torch.cos, weight, use_reentrant=False)
torch.autograd.grad(wave.sum(), weight)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "checkpoint-reentrant-with-autograd-grad",
    ("needed_here", "called_here"),
    "gradients of certain inputs were asked for through a checkpoint of the old kind",
    "with `use_reentrant=True` a checkpoint runs a whole backward pass of its own",
    "pass `use_reentrant=False` to the checkpoint",
)
