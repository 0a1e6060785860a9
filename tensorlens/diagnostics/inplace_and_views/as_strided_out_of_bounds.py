"""`as_strided` describes a view that reaches past the end of the memory.

Size, strides and offset are taken as they are; nothing is read beyond the last element of the memory.

## Fails

```python
import torch

values = torch.ones(3)  # base_made_here
window = values.as_strided((2, 2), (1, 2))  # rejected_here
```

## Fixed

```python
import torch

values = torch.ones(3)
window = values.as_strided((2, 2), (1, 1))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "as-strided-out-of-bounds",
    ("rejected_here", "base_made_here"),
    "{op} would reach beyond the memory of {base}",
    "the sizes, strides and offset lead to a place that the memory does not have",
    "ask for fewer elements, or for smaller strides",
)
