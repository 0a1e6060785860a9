"""A computed tensor was to be sent to another process.

The graph of a computed tensor lives in this process and cannot be carried over, and without it the tensor would claim a
history that it does not have there. Values can be sent: as a detached tensor, or as a leaf.

## Fails

```python
import torch
import torch.multiprocessing as mp

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2  # nonleaf_made_here
queue = mp.SimpleQueue()
queue.put(hidden)  # rejected_here
```

## Fixed

```python
import torch
import torch.multiprocessing as mp

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 2
queue = mp.SimpleQueue()
queue.put(hidden.detach().numpy())
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "cross-process-nonleaf",
    ("rejected_here", "nonleaf_made_here"),
    "a computed tensor was to be sent to another process",
    "its graph lives in this process and can't be carried over",
    "send the values: `.detach()`",
)
