"""The place of a tensor in the graph was asked for, and it is in none.

`get_gradient_edge` names the node that a tensor's gradient arrives at. A tensor that does not require grad has none.

## Fails

```python
import torch

image = torch.zeros(3)  # leaf_made_here
bright = image + 1
torch.autograd.graph.get_gradient_edge(bright)  # rejected_here
```

## Fixed

```python
import torch

image = torch.zeros(3, requires_grad=True)
bright = image + 1
torch.autograd.graph.get_gradient_edge(bright)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "gradient-edge-without-grad",
    ("rejected_here", "leaf_made_here:never"),
    "a tensor that does not require grad has no place in a graph",
    "nothing that it was computed from requires grad, so no operation was recorded",
    "let {leaf} require grad before the forward pass",
)
