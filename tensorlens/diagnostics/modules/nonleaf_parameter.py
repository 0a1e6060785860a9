"""A `Parameter` that has become the result of an operation was registered in a module.

A parameter is a leaf, where the graph begins. This one was changed in place by a recorded operation, which made it a
result. What a module computes from its parameters belongs into `forward`, where it is computed anew each time.

## Fails

```python
import torch

gate = torch.tensor([2.0, 3.0], requires_grad=True)
scale = torch.nn.Parameter(torch.ones(2), requires_grad=False)
scale.mul_(gate)  # nonleaf_made_here
module = torch.nn.Module()
module.scale = scale  # rejected_here
```

## Fixed

```python
import torch

gate = torch.tensor([2.0, 3.0], requires_grad=True)
scale = torch.nn.Parameter(torch.ones(2), requires_grad=False)
with torch.no_grad():
    scale.mul_(gate)
module = torch.nn.Module()
module.scale = scale
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "nonleaf-parameter",
    ("rejected_here", "nonleaf_made_here"),
    "a `Parameter` that is the result of an operation was given to a module",
    "a parameter is a leaf; a recorded change in place has made this one a result",
    "change its values inside `with torch.no_grad():`",
    "what is computed from parameters belongs into `forward`",
)
