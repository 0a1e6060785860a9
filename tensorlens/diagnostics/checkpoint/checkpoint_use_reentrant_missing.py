"""`checkpoint` was called without `use_reentrant`, so its old implementation was chosen.

There are two implementations of checkpointing with different rules. The old one (`use_reentrant=True`) runs backward
inside backward: at least one input has to require grad, `torch.autograd.grad` does not work through it, and keyword
arguments are not taken. The new one has none of these limits. Because the default is going to change, PyTorch wants the
choice to be written down.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(torch.sin, weight)  # rejected_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(torch.sin, weight, use_reentrant=False)
wave.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "checkpoint-use-reentrant-missing",
    ("rejected_here",),
    "`checkpoint` was called without saying which implementation to use",
    "the two implementations have different rules, and the default is going to change",
    "pass `use_reentrant=False`: the newer implementation has fewer limits than the older one",
)
