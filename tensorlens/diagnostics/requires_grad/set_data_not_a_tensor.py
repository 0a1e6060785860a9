"""Something that is not a tensor was assigned to `.data`.

`.data` stands for the memory of the tensor, so it takes a tensor. Lists and arrays have to be made into one first. To
change values, writing into the parameter under `no_grad` is the better way: autograd takes notice of it.

## Fails

```python
import numpy as np
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loaded = np.zeros(2)  # value_made_here
weight.data = loaded  # rejected_here
```

## Fixed

```python
import numpy as np
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loaded = np.zeros(2)
with torch.no_grad():
    weight.copy_(torch.from_numpy(loaded))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "set-data-not-a-tensor",
    ("rejected_here", "value_made_here:plain"),
    "`.data` was assigned something that is not a tensor",
    "`.data` stands for the memory of a tensor, so it takes a tensor only",
    "make it a tensor first, `torch.as_tensor(...)`",
    "to change values, prefer `with torch.no_grad(): p.copy_(...)`",
)
