"""A tensor that was a leaf when the graph was recorded was made the result of an operation before backward.

Backward arrives at the leaf that the graph knows and wants to store a gradient in it. The same tensor object has since
been changed in place by a recorded operation, so it is no longer a leaf, and gradients are not stored there.

## Fails

```python
import torch

scale = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
gate = torch.tensor([0.5, 0.5], requires_grad=True)
loss = (scale * 3).sum()  # graph_built_here
scale.requires_grad_(False)
scale.mul_(gate)  # modified_here
loss.backward()  # needed_here
```

## Fixed

```python
import torch

scale = torch.tensor([1.0, 2.0], requires_grad=True)
gate = torch.tensor([0.5, 0.5], requires_grad=True)
loss = (scale * 3).sum()
gated = scale.detach() * gate
loss.backward()
```
"""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import became_non_leaf
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "leaf-moved-into-graph-interior",
    became_non_leaf,
    ("leaf_made_here", "graph_built_here"),
    (
        "{name} was a leaf when the graph was recorded, and {op} has made it the result of an operation",
        "backward wants to store a gradient in {name}, and gradients are stored in leaves only",
        "{op} is recorded and makes {name} its result",
    ),
    "compute a new tensor instead of changing {name} in place",
    "or change it inside `with torch.no_grad():`, after the last backward",
)
