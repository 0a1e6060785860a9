"""`detach_()` was called on a view.

`detach_()` takes a tensor's own history away. A view has its history through its base, and the base stays in the graph,
so the view cannot leave it alone. `detach()` makes another tensor that is outside the graph.

## Fails

```python
import torch

states = torch.ones(2, 3, requires_grad=True) * 2
last = states[-1]  # view_made_here
last.detach_()  # rejected_here
```

## Fixed

```python
import torch

states = torch.ones(2, 3, requires_grad=True) * 2
last = states[-1]
last = last.detach()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "detach-view-inplace",
    ("rejected_here", "view_made_here"),
    "{op} can't take {view} out of the graph: it is a view",
    "the history of a view is that of its base, which stays in the graph",
    "use {view}`.detach()`: a new tensor outside the graph on the same memory",
)
