"""A tensor was made on the memory of a read-only NumPy array or of a bytes object.

The tensor shares the memory and knows nothing of the ban: writing to it would change values that their owner has
promised not to change, with undefined results. PyTorch warns once.

## Fails

```python
import numpy as np
import torch

table = np.broadcast_to(np.arange(3.0), (2, 3))  # value_made_here
shared = torch.from_numpy(table)  # shared_here
```

## Fixed

```python
import numpy as np
import torch

table = np.broadcast_to(np.arange(3.0), (2, 3))
shared = torch.from_numpy(table.copy())
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "numpy-array-not-writable",
    ("shared_here:with_array", "value_made_here:plain"),
    "a tensor was made on memory that its owner has marked read-only",
    "{op} copies nothing: a write to the tensor would change values that were promised not to change",
    "copy the values: `torch.tensor(...)`, or `array.copy()` before `torch.from_numpy`",
)
