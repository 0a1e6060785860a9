"""A tensor was marked as `volatile`, which has had no effect since PyTorch 0.4.

In old code `volatile=True` kept operations from being recorded. Today the word is ignored: everything is recorded,
gradients reach the parameters and memory is used. `torch.no_grad()` has taken its place.

## Fails

```python
import torch
from torch.autograd import Variable

batch = Variable(torch.ones(2), volatile=True)  # rejected_here
```

## Fixed

```python
import torch

with torch.no_grad():
    batch = torch.ones(2)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "volatile-removed",
    ("rejected_here",),
    "a tensor was marked as `volatile`, which has no effect any more",
    "operations on it are recorded, although the mark was meant to prevent that",
    "compute inside `with torch.no_grad():` and leave the word out",
)
