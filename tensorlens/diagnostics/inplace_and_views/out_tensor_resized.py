"""The tensor that was passed as `out=` had the wrong shape and was resized.

The result does not fit into it, so its memory is laid out anew. Views and other names on the same memory then show
other values than before. PyTorch warns, and will refuse one day.

## Fails

```python
import torch

buffer = torch.empty(5)  # value_made_here
torch.add(torch.ones(3), 1, out=buffer)  # rejected_here
```

## Fixed

```python
import torch

buffer = torch.empty(3)
torch.add(torch.ones(3), 1, out=buffer)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "out-tensor-resized",
    ("rejected_here", "value_made_here"),
    "{op} resized the tensor that was passed as `out=`",
    "the result has another shape than {value}, and views of its old memory are now wrong",
    "make the tensor for `out=` in the shape of the result, or with `torch.empty(0)`",
)
