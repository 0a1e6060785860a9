"""An in-place operation would have to make its tensor larger.

`a += b` writes into the memory of `a`. If `b` has more rows or dimensions, the result has the larger shape and does not
fit in there. The same sum, out of place, is fine.

## Fails

```python
import torch

total = torch.zeros(3)  # value_made_here
total += torch.ones(2, 3)  # rejected_here
```

## Fixed

```python
import torch

total = torch.zeros(3)
total = total + torch.ones(2, 3)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.rejected_call import RejectedCall

find = rejected(
    "inplace-broadcast-shape",
    ("rejected_here", "value_made_here:first"),
    "{op} would have to make {value} larger",
    "a change in place keeps the shape; the other operand would broadcast it to a larger one",
    "use the operation that makes a new tensor: `a = a + b` in place of `a += b`",
    "or reduce the other operand to the shape of {value}",
    when=RejectedCall.is_inplace,
)
