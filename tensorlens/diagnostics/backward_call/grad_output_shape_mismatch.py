"""The gradient that was passed to backward does not have the shape of the tensor that it belongs to.

The gradient to start from has one weight for each element of the result. Another shape, even one that would broadcast,
does not say which weight belongs to which element.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
doubled = weight * 2  # graph_built_here
start = torch.ones(2)  # value_made_here
doubled.backward(start)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
doubled = weight * 2
start = torch.ones_like(doubled)
doubled.backward(start)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-output-shape-mismatch",
    ("needed_here", "graph_built_here", "value_made_here"),
    "the gradient passed to {op} does not have the shape of the result it belongs to",
    "backward needs one weight for each element of the result",
    "make it with the result's own shape: `torch.ones_like(...)`",
)
