"""One of several views that a single operation returned was changed in place.

`unbind`, `split`, `chunk` and a loop over a tensor return many views from one recorded operation. To follow a change of
a view, autograd rewrites the history of the tensor it looks into; with several views from one operation it would have
to rewrite that of all the others too, and it does not support this. Changes of the base reach those views in the same
way, and are refused when such a view is used next.

## Fails

```python
import torch

weight = torch.ones(2, 3, requires_grad=True)
hidden = weight * 2
first, second = hidden.unbind(0)  # view_made_here
first.mul_(10)  # modified_here
```

## Fixed

```python
import torch

weight = torch.ones(2, 3, requires_grad=True)
hidden = weight * 2
first, second = hidden.unbind(0)
first = first * 10
(first + second).sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "multi-output-view-modified-inplace",
    ("modified_here", "view_made_here"),
    "{op} would change {view}, one of several views that one operation returned",
    "autograd can't rewrite the history of the other views that were made together with {view}",
    "use the operation that makes a new tensor instead of changing {view}",
    "or take a view of its own for each part, by indexing: `x[0]`, `x[:, 2:4]`",
)
