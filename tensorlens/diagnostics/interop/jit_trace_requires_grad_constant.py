"""A traced function used a tensor that requires grad and was not one of its arguments.

Tracing stores such a tensor as a constant, and a constant has no gradient: training through the traced function would
do nothing.

## Fails

```python
import torch

scale = torch.ones(3, requires_grad=True)  # leaf_made_here


def scaled(value):
    return value * scale  # rejected_here


torch.jit.trace(scaled, torch.ones(3))  # called_here
```

## Fixed

```python
import torch

with torch.no_grad():
    scale = torch.ones(3)


def scaled(value):
    return value * scale


print(scaled(torch.ones(3)))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "jit-trace-requires-grad-constant",
    ("rejected_here", "leaf_made_here", "called_here:outer"),
    "{leaf} requires grad, and tracing would store it as a constant",
    "a constant has no gradient: nothing could be trained through it",
    "pass it as an argument, or make it a parameter of a traced module",
    "where no gradient is meant, store {leaf}`.detach()`",
)
