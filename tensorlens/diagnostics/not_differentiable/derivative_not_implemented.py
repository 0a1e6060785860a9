"""Backward came to an operation that has no derivative.

The operation is recorded in the forward pass, so that its result can be used, and its derivative with respect to this
input is marked as missing in PyTorch: it does not exist, or nobody has written it. Only backward finds out.

## Fails

```python
import torch

values = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
kinds = torch.unique(values)  # graph_built_here
kinds.sum().backward()  # needed_here
```

## Fixed

```python
import torch

values = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
kinds, place = torch.unique(values.detach(), return_inverse=True)
sums = torch.zeros_like(kinds).index_add(0, place, values)
sums.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "derivative-not-implemented",
    ("needed_here", "graph_built_here:dead_end"),
    "backward came to an operation that has no derivative",
    "the operation is recorded so that its result can be used; its derivative does not exist or is not written",
    "if no gradient is needed through it, `detach()` its input",
    "if one is, compute the same with operations that have a derivative",
)
