"""`materialize_grads=True` was asked for with a place in the graph instead of a tensor.

Where a gradient is missing, `materialize_grads` fills it with zeros of the tensor's shape. A `GradientEdge` names a
place in the graph and knows no shape, so nothing can be filled in.

## Fails

```python
import torch
from torch.autograd.graph import get_gradient_edge

weight = torch.tensor([1.0, 2.0], requires_grad=True)
place = get_gradient_edge(weight * 2)  # value_made_here
torch.autograd.grad(weight.sum(), place, materialize_grads=True)  # rejected_here
```

## Fixed

```python
import torch
from torch.autograd.graph import get_gradient_edge

weight = torch.tensor([1.0, 2.0], requires_grad=True)
place = get_gradient_edge(weight * 2)
torch.autograd.grad(weight.sum(), place, allow_unused=True)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "materialize-grads-gradient-edge",
    ("rejected_here", "value_made_here:plain"),
    "zeros were asked for at a place in the graph that has no shape",
    "a `GradientEdge` names a place, not a tensor: {op} can't tell which zeros are meant",
    "ask for the tensor itself",
    "or pass `allow_unused=True` and expect None",
)
