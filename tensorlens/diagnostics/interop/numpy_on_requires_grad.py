"""A tensor that takes part in autograd was turned into a NumPy array.

An array would share the tensor's memory and know nothing of its history: what NumPy computes from it has no gradient,
and what NumPy writes into it changes values behind autograd's back. So PyTorch wants the step out of the graph to be
written down, as `detach()`. Libraries that take arrays (plotting, metrics, statistics) run into this as well.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
curve = weight * 3  # graph_built_here
points = curve.numpy()  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
curve = weight * 3
points = curve.detach().numpy()
print(points.sum())
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "numpy-on-requires-grad",
    ("rejected_here", "graph_built_here"),
    "{op} would turn a tensor of the graph into a NumPy array",
    "an array has no history: what NumPy computes has no gradient, and what it writes bypasses autograd",
    "to look at the values, step out of the graph first: `.detach().numpy()`, with `.clone()` if they will be changed",
    "if the result has to be differentiated, compute it with torch operations instead of NumPy",
)
