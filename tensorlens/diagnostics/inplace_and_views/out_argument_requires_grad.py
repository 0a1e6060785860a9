"""A function was called with `out=` while one of its tensors requires grad.

With `out=` the result is written into a tensor that exists already, and this is never recorded. Without a record the
gradient would be lost without a word, so PyTorch refuses while recording is on.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)  # leaf_made_here
buffer = torch.empty(2)
torch.mul(weight, 3, out=buffer)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
buffer = torch.mul(weight, 3)
buffer.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "out-argument-requires-grad",
    ("rejected_here", "leaf_made_here"),
    "{op} was called with `out=` on a tensor that requires grad",
    "what is written into `out` is not recorded, so the gradient of {leaf} would be lost",
    "use the result that the function returns in place of `out=`",
    "if no gradient is needed here, call it inside `with torch.no_grad():`",
)
