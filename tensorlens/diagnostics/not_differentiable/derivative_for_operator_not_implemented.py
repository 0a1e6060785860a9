"""Backward came to an operator that PyTorch has no derivative for at all.

In the forward pass a node is recorded that does nothing but raise this error. The result looks differentiable: it
requires grad and has a `grad_fn` called `NotImplemented`. If no gradient is wanted through the operator, its input has
to be detached; if one is, another operation has to take its place.

## Fails

```python
import torch

values = torch.tensor([-1.0, 2.0], requires_grad=True)
steps = torch.heaviside(values, torch.ones(2))  # graph_built_here
steps.sum().backward()  # needed_here
```

## Fixed

```python
import torch

values = torch.tensor([-1.0, 2.0], requires_grad=True)
steps = torch.sigmoid(values * 20)
steps.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "derivative-for-operator-not-implemented",
    ("needed_here", "graph_built_here:dead_end"),
    "backward came to an operator that has no derivative",
    "PyTorch records a node for it that does nothing but raise this error",
    "if no gradient is needed through it, `detach()` its input",
    "if one is, compute the same, or something smooth, with operations that have a derivative",
)
