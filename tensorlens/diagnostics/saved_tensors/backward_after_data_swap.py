"""A tensor that backward needs was given other memory, of another shape, through `.data`.

Autograd saves the tensor, not its values, and checks its version, which an assignment to `.data` does not raise. So
backward goes on and combines what does not belong together; with another shape it stops in the middle of a formula,
with a message about sizes. With the same shape the gradient would be wrong without a word.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (weight * weight).sum()  # saved_here
weight.data = torch.ones(3)  # modified_here
loss.backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (weight * weight).sum()
loss.backward()
weight = torch.ones(3, requires_grad=True)
```
"""

from __future__ import annotations

from tensorlens.analysis.changed_after_use import moved_to_other_storage
from tensorlens.diagnostics.shared.changed_after_use import overtaken_before_backward

find = overtaken_before_backward(
    "backward-after-data-swap",
    moved_to_other_storage,
    ("saved_here",),
    (
        "{name} was given other memory by {op} after autograd had saved it",
        "the version of {name} did not move, so backward goes on, and the sizes it combines do not fit",
        "from here on {name} lies in other memory",
    ),
    "call backward before the values are replaced, or compute the loss again afterwards",
    "to change values, use `with torch.no_grad(): p.copy_(...)`: autograd notices that",
)
