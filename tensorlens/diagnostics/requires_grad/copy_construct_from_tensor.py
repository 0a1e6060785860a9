"""`torch.tensor` or `new_tensor` was given a tensor that already exists.

It copies the values into a new tensor and drops the history, so no gradient will flow to what they were computed from.
Both steps can be meant, and then `detach()` and `clone()` say so; often neither is, and the line only wanted the tensor
itself, or to join several.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
margin = weight * 2  # graph_built_here
copied = torch.tensor(margin)  # graph_cut_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
margin = weight * 2
copied = margin.detach().clone()
margin.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "copy-construct-from-tensor",
    ("graph_cut_here", "graph_built_here"),
    "{op} was given a tensor: it copies the values and drops their history",
    "what is computed from the copy does not lead back to what the tensor was computed from",
    "if a copy without history is meant, write `.detach().clone()`",
    "if not, use the tensor itself, or `.clone()`, which keeps the history",
)
