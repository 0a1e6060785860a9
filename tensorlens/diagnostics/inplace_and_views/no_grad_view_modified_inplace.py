"""A view that was made under `no_grad` was changed in place after recording had been switched on again.

Made under `no_grad`, the view carries no history that ties it to its base. A recorded change through it can mean two
things: a change of the base, which then has to be differentiated, or a change of values that no gradient shall see.
Autograd does not choose between them. It asks that the view and the change stand on the same side.

## Fails

```python
import torch

weight = torch.ones(4, requires_grad=True)
hidden = weight * 3  # base_made_here
with torch.no_grad():  # grad_mode_off_here
    head = hidden[:2]  # view_made_here
head.add_(1)  # modified_here
```

## Fixed

```python
import torch

weight = torch.ones(4, requires_grad=True)
hidden = weight * 3
head = hidden[:2]
head.add_(1)
hidden.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "no-grad-view-modified-inplace",
    ("modified_here", "view_made_here", "grad_mode_off_here", "base_made_here"),
    "{op} changes {view}, a view that was made while gradients were not recorded",
    "made without recording, {view} has no history that leads to {base}: the change may or may not be meant to count",
    "make the view outside the `no_grad` block if the change is part of the computation",
    "or move the change into the `no_grad` block too if it is not",
)
