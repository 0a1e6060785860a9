"""An in-place operation would give a result that does not fit the data type of its tensor.

`a += b` writes into `a`, whose data type stays what it is. A fraction does not fit into integers, nor a complex number
into real ones; PyTorch refuses, where rounding would change values without a word.

## Fails

```python
import torch

counts = torch.zeros(3, dtype=torch.int64)  # value_made_here
counts += 0.25  # rejected_here
```

## Fixed

```python
import torch

counts = torch.zeros(3)
counts += 0.25
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.rejected_call import RejectedCall

find = rejected(
    "inplace-dtype-cast",
    ("rejected_here", "value_made_here:first"),
    "the result of {op} does not fit the data type of {value}",
    "a change in place keeps the data type, and PyTorch does not round or drop a part without being asked",
    "make {value} in the data type of the results, such as `dtype=torch.float32`",
    "or use the operation that makes a new tensor: `a = a + b` in place of `a += b`",
    when=RejectedCall.is_inplace,
)
