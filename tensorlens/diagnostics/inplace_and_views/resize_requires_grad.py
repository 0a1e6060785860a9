"""A tensor that requires grad was resized in place.

Resizing gives a tensor another number of elements. The gradient of the old ones would have no place to go, and for the
new ones there is no history.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
weight.resize_(4)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
longer = torch.cat([weight, torch.zeros(2)])
longer.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "resize-requires-grad",
    ("rejected_here", "leaf_made_here"),
    "{op} would give {leaf} another size, and it requires grad",
    "a resized tensor has elements without history, and others whose gradient has no place to go",
    "make a new tensor: `torch.cat`, `pad` or a slice, which are recorded",
)
