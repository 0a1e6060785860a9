"""An optimizer was given a single tensor in place of a list.

An optimizer takes the parameters as a list or another sequence, or a list of groups. A tensor is a sequence of its
rows, which are computed tensors, and this is hardly ever meant; so it is refused.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD(weight, lr=0.1)  # optimizer_made_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "optimizer-params-not-iterable",
    ("optimizer_made_here",),
    "the optimizer was given a single tensor in place of a list",
    "an optimizer takes a list of tensors, or a list of groups",
    "put it into a list: `[weight]`",
)
