"""A parameter of a lazy module was used before the module had seen any input.

A lazy module learns the size of its parameters from the first input. Until then they have neither shape nor values, so
they cannot be counted, initialized or copied.

## Fails

```python
import torch

layer = torch.nn.LazyLinear(2)  # leaf_made_here
total = sum(parameter.numel() for parameter in layer.parameters())  # rejected_here
```

## Fixed

```python
import torch

layer = torch.nn.LazyLinear(2)
layer(torch.ones(1, 3))
total = sum(parameter.numel() for parameter in layer.parameters())
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "lazy-parameter-uninitialized",
    ("rejected_here", "leaf_made_here"),
    "a parameter of a lazy module was used before it had a shape",
    "a lazy module learns the size of its parameters from its first input",
    "run the module once on an example before counting, initializing or copying its parameters",
)
