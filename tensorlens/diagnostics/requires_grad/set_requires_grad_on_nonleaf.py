"""The `requires_grad` flag of a computed tensor was changed.

Whether a computed tensor requires grad follows from its inputs: it does if one of them does. Only a leaf has a flag of
its own to set. What is usually meant by switching it off is that gradients should stop here, and `detach()` does that:
it gives a tensor with the same values and no history.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
features = weight * 5  # nonleaf_made_here
features.requires_grad = False  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
features = weight * 5
features = features.detach()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "set-requires-grad-on-nonleaf",
    ("rejected_here", "nonleaf_made_here"),
    "the `requires_grad` flag of {nonleaf} was changed, which is not a leaf",
    "{nonleaf} requires grad because what it was computed from does; only a leaf has a flag of its own",
    "to stop gradients at {nonleaf}, continue with {nonleaf}`.detach()`",
    "to freeze parameters, switch off their own flags before the forward pass",
)
