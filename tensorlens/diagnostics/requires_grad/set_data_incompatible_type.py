"""A tensor of another kind was assigned to `.data`.

`.data = ...` lets a tensor keep its identity and gives it other memory. Its kind has to stay: dense stays dense, and
the type of device stays what it was.

## Fails

```python
import torch

weight = torch.ones(2, 2, requires_grad=True)  # leaf_made_here
sparse = torch.eye(2).to_sparse()  # value_made_here
weight.data = sparse  # rejected_here
```

## Fixed

```python
import torch

weight = torch.ones(2, 2, requires_grad=True)
sparse = torch.eye(2).to_sparse()
weight.data = sparse.to_dense()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "set-data-incompatible-type",
    ("rejected_here", "leaf_made_here", "value_made_here"),
    "{leaf} was given the memory of another kind of tensor",
    "`.data` may change the values of a tensor, not its layout or the type of its device",
    "convert the values first, such as with `.to_dense()`",
    "or make a new leaf in place of {leaf}",
)
