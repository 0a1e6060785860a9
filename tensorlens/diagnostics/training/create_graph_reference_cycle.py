"""`backward` was called with `create_graph=True`, so a parameter and its gradient keep each other alive.

The gradient that is stored in `.grad` has a graph of its own, and that graph leads back to the parameter. The parameter
holds the gradient, the gradient the parameter: their memory is not given back until `.grad` is reset.
`torch.autograd.grad` returns the gradients and stores nothing.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
energy = weight.pow(3).sum()  # graph_built_here
energy.backward(create_graph=True)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
energy = weight.pow(3).sum()
(slope,) = torch.autograd.grad(energy, weight, create_graph=True)
slope.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "create-graph-reference-cycle",
    ("rejected_here", "graph_built_here"),
    "{op} with `create_graph=True` ties a parameter and its gradient to each other",
    "the gradient stored in `.grad` has a graph that leads back to the parameter, so neither is freed",
    "use `torch.autograd.grad(..., create_graph=True)`: it returns the gradients and stores nothing",
    "or reset the gradients when they have been used: `.grad = None`",
)
