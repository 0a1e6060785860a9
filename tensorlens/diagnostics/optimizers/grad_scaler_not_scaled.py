"""`GradScaler.step` was called and no loss had been scaled.

The scaler multiplies the loss before backward and divides the gradients again in `step`. If `scale` was never called
there is nothing to divide by.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
layer(torch.ones(1, 2)).sum().backward()
scaler.step(optimizer)  # needed_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
scaler.step(optimizer)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-scaler-not-scaled",
    ("needed_here",),
    "`GradScaler` was asked to step, and no loss had been scaled",
    "the step divides the gradients by the factor that the loss was scaled by, and there is none",
    "scale the loss before backward: `scaler.scale(loss).backward()`",
)
