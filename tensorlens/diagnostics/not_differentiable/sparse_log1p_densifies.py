"""The gradient of `log1p` of a sparse tensor needs a dense one.

The derivative of `log1p` is 1 where the value is 0: it has a value everywhere, also where the sparse tensor stores
none. So backward makes a dense tensor of the full shape.

## Fails

```python
import torch

sparse = torch.eye(3).to_sparse().requires_grad_()
logs = torch.log1p(sparse)  # graph_built_here
logs.to_dense().sum().backward()  # needed_here
```

## Fixed

```python
import torch

dense = torch.eye(3).requires_grad_()
logs = torch.log1p(dense)
logs.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "sparse-log1p-densifies",
    ("needed_here", "graph_built_here:sparse"),
    "the gradient of {graph} is dense, though what it was computed from is sparse",
    "its derivative is not 0 where the sparse tensor stores nothing",
    "compute with a dense tensor, or with the stored values alone",
)
