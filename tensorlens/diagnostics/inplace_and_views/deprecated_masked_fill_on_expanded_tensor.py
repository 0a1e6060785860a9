"""`masked_fill_` was called on an expanded tensor in which several elements share one place in memory.

`expand` repeats rows or columns without copying them. A change of one element changes all its repetitions, so more
values change than were chosen. For this operation PyTorch still allows it, warns, and will refuse one day.

## Fails

```python
import torch

table = torch.zeros(2, 1).expand(2, 3)  # view_made_here
table.masked_fill_(torch.eye(2, 3) > 0, 4.0)  # rejected_here
```

## Fixed

```python
import torch

table = torch.zeros(2, 1).expand(2, 3).clone()
table.masked_fill_(torch.eye(2, 3) > 0, 4.0)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "deprecated-masked-fill-on-expanded-tensor",
    ("rejected_here", "view_made_here"),
    "several elements of {view} are the same place in memory, and `masked_fill_` changes some of them",
    "an expanded tensor repeats its source without copying it, so more values change than were chosen",
    "give each element its own memory first: `.clone()` after the `expand`",
)
