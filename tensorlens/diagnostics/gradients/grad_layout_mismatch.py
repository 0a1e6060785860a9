"""A tensor of another layout was assigned to `.grad`.

A gradient is dense where its tensor is dense: an optimizer combines the two element by element.

## Fails

```python
import torch

weight = torch.ones(2, 2, requires_grad=True)  # leaf_made_here
sparse = torch.eye(2).to_sparse_csr()  # value_made_here
weight.grad = sparse  # rejected_here
```

## Fixed

```python
import torch

weight = torch.ones(2, 2, requires_grad=True)
dense = torch.eye(2)
weight.grad = dense
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-layout-mismatch",
    ("rejected_here", "leaf_made_here", "value_made_here"),
    "the gradient assigned to {leaf} has another layout than {leaf}",
    "an optimizer combines a tensor and its gradient element by element",
    "convert it first, such as with `.to_dense()`",
)
