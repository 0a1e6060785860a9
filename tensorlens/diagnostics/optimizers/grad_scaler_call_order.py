"""The methods of `GradScaler` were called in an order in which gradients would be divided twice.

In each round: `scale(loss).backward()`, then `unscale_` at most once, then `step`, then `update`. `update` begins the
next round; without it the scaler takes the second call for another one of the same round.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
scaler.unscale_(optimizer)  # modified_here
scaler.unscale_(optimizer)  # rejected_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
scaler.unscale_(optimizer)
scaler.step(optimizer)
scaler.update()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-scaler-call-order",
    ("rejected_here", "modified_here:before"),
    "the methods of `GradScaler` were called in an order that would divide the gradients twice",
    "in each round: `scale(loss).backward()`, `unscale_` at most once, `step`, `update`",
    "end each round with `scaler.update()`, and call `unscale_` once for each optimizer",
)
