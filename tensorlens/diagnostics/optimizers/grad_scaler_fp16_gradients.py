"""`GradScaler` was used with parameters that are float16 themselves.

Scaling is part of mixed precision: parameters stay float32, and autocast computes in float16 where that is safe.
Gradients of float16 parameters are float16 as well, and dividing them again would lose what the scaling had saved.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1).half()  # leaf_made_here
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
scaler.scale(layer(torch.ones(1, 2).half()).sum()).backward()
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
    "grad-scaler-fp16-gradients",
    ("needed_here", "leaf_made_here:converted"),
    "`GradScaler` was used with parameters that are float16",
    "dividing float16 gradients again would lose what the scaling had saved",
    "keep the parameters in float32 and compute inside `torch.autocast`",
)
