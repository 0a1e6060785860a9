"""`grad_dtype` was set on a computed tensor.

It says in which data type the gradients of a leaf are added up. A computed tensor has no gradient of its own to add to.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2  # nonleaf_made_here
hidden.grad_dtype = torch.float64  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.grad_dtype = torch.float64
hidden = weight * 2
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-dtype-attribute-on-nonleaf",
    ("rejected_here", "nonleaf_made_here"),
    "{op} was refused: {nonleaf} is not a leaf",
    "it says in which data type the gradient of a leaf is stored, and backward stores none for computed tensors",
    "use it on the leaf",
)
