"""A tensor that autograd had saved for backward was cut from its graph by `detach_()` before backward used it.

Backward needs the saved tensor together with its place in the graph, to know where the gradient goes on from there.
`detach_()` takes this place away from the tensor itself, for everything that refers to it. `detach()` leaves the tensor
as it is and returns another one.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 3
loss = (hidden * hidden).sum()  # saved_here
hidden.detach_()  # modified_here
loss.backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 3
loss = (hidden * hidden).sum()
state = hidden.detach()
loss.backward()
```
"""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import lost_history
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "saved-tensor-detached-inplace",
    lost_history,
    ("saved_here",),
    (
        "{name} was cut from its graph by {op}, and backward needs it with its history",
        "backward needs the tensor together with its place in the graph, and {op} takes that away for everyone",
        "{op} takes the history of {name} away here",
    ),
    "use `detach()`, which leaves the tensor as it is",
    "or call {op} after the last backward",
)
