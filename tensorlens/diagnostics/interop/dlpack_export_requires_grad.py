"""Another library asked for a tensor that requires grad, through DLPack.

The other side sees the memory and not the history, so what it computes has no gradient. Leaving the graph has to be
written down, as for NumPy.

## Fails

```python
import numpy as np
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
array = np.from_dlpack(weight)  # rejected_here
```

## Fixed

```python
import numpy as np
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
array = np.from_dlpack(weight.detach())
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "dlpack-export-requires-grad",
    ("rejected_here", "leaf_made_here"),
    "another library asked for a tensor that requires grad",
    "it sees the memory and not the history, so what it computes has no gradient",
    "step out of the graph first: `.detach()`",
)
