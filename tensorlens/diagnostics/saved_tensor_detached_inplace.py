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

from tensorlens.diagnostics.refusals import refused

find = refused(
    "saved-tensor-detached-inplace",
    ("needed_here",),
    "backward needs a tensor that `detach_()` has cut from its graph",
    "it needs the tensor together with its place in the graph, and `detach_()` takes that away for everyone",
    "use `detach()`, which leaves the tensor as it is",
    "or call `detach_()` after the last backward",
)
