"""An optimizer was given its parameters as a set.

The state of an optimizer belongs to parameters by their order: when it is saved and loaded, the third state is that of
the third parameter. A set has no order.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1)
group = {"params": set(layer.parameters())}  # value_made_here
optimizer = torch.optim.SGD([group], lr=0.1)  # optimizer_made_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 1)
group = {"params": list(layer.parameters())}
optimizer = torch.optim.SGD([group], lr=0.1)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "optimizer-params-in-set",
    ("optimizer_made_here", "value_made_here:container"),
    "the optimizer was given its parameters as a set",
    "its state belongs to parameters by their order, and a set has none",
    "pass a list",
)
