"""A view that was made in inference mode was changed in place outside of it.

The view has no history that ties it to its base, which is an ordinary tensor of the graph. A recorded change through it
could be meant for the base or not, so autograd refuses, as it does for views made under `no_grad`.

## Fails

```python
import torch

hidden = torch.ones(4, requires_grad=True) * 2  # base_made_here
with torch.inference_mode():  # mode_entered_here
    head = hidden[:2]  # view_made_here
head.add_(1)  # modified_here
```

## Fixed

```python
import torch

hidden = torch.ones(4, requires_grad=True) * 2
head = hidden[:2]
head.add_(1)
hidden.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "inference-mode-view-modified-inplace",
    ("modified_here", "view_made_here", "mode_entered_here", "base_made_here"),
    "{op} changes {view}, a view that was made in inference mode",
    "made without recording, {view} has no history that leads to {base}: the change may or may not be meant to count",
    "make the view outside the `inference_mode` block if the change is part of the computation",
    "or move the change into the block too if it is not",
)
