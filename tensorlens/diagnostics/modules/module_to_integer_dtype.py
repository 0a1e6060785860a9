"""A module was asked to convert its parameters to integers.

Parameters are trained by small steps, so they stay floating point or complex. Quantization, which stores weights as
integers, has functions of its own.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 2)
layer.to(torch.int32)  # rejected_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 2)
layer.to(torch.float64)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "module-to-integer-dtype",
    ("rejected_here",),
    "a module was asked to convert its parameters to integers",
    "parameters are trained by small steps: they have to stay floating point or complex",
    "choose a floating point dtype, or convert the inputs in place of the module",
    "to store weights as integers, use the functions for quantization",
)
