"""Anomaly mode was switched on with `torch.autograd.detect_anomaly()`, and PyTorch says that it is slow.

Every operation now remembers its Python stack and every gradient is looked at for NaN. That is right while searching
for an error and too slow to be left in. The warning is not about a mistake.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.autograd.detect_anomaly():  # rejected_here
    weight.square().sum().backward()
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
weight.square().sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "anomaly-mode-enabled",
    ("rejected_here",),
    "anomaly mode is on",
    "each operation now keeps its Python stack and each gradient is searched for NaN, which is slow",
    "leave it out once the error is found",
)
