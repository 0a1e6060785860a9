"""Backward came to a QR decomposition that had not computed what its derivative needs.

The derivative of R needs Q. With `mode="r"` only R is computed, which saves time and cannot be differentiated.

## Fails

```python
import torch

table = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 7.0]], requires_grad=True)
_, upper = torch.linalg.qr(table, mode="r")  # graph_built_here
upper.sum().backward()  # needed_here
```

## Fixed

```python
import torch

table = torch.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 7.0]], requires_grad=True)
_, upper = torch.linalg.qr(table, mode="reduced")
upper.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "qr-not-differentiable",
    ("needed_here", "graph_built_here"),
    "backward came to a QR decomposition that had not computed what its derivative needs",
    "the derivative of R needs Q, which this mode does not compute",
    "use `mode='reduced'`",
)
