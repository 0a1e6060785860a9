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
