"""A tensor was to be resized whose memory does not belong to PyTorch.

The memory comes from NumPy, or was shared with it, with DLPack or with another process. PyTorch cannot let it grow,
because somebody else holds a pointer to it.

## Fails

```python
import numpy as np
import torch

values = torch.from_numpy(np.ones(2))  # shared_here
values.resize_(6)  # rejected_here
```

## Fixed

```python
import numpy as np
import torch

values = torch.from_numpy(np.ones(2)).clone()
values.resize_(6)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "storage-not-resizable",
    ("rejected_here", "shared_here"),
    "{op} would resize memory that does not belong to PyTorch",
    "somebody else, such as a NumPy array, holds a pointer to this memory",
    "take a copy first: `.clone()` owns its memory",
)
