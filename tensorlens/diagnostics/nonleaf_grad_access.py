"""The `.grad` of a tensor that is not a leaf was read.

Backward stores gradients only in leaves: the tensors that were created to require grad, such as parameters. What is
computed from them passes gradients on and keeps none: `.grad` is None there before backward, and after it too, unless
`retain_grad()` was called. A tensor that was a leaf under the same name may have been replaced by a result:
`w = w - lr * w.grad` or `w = w.to(...)`. Then `retain_grad()` is no cure: write the update in place, under `no_grad`,
so that `w` stays the leaf; convert first, and let the converted tensor require grad.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 3  # nonleaf_made_here
hidden.sum().backward()
print(hidden.grad)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 3
hidden.retain_grad()
hidden.sum().backward()
print(hidden.grad)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.provenance import Refusal
from tensorlens.diagnostics.refusals import refused

find = refused(
    "nonleaf-grad-access",
    ("observed_here", "nonleaf_made_here"),
    "`.grad` of {nonleaf} was read, which is not a leaf",
    "backward keeps gradients only in leaves; {nonleaf} is computed, so its gradient is passed on and not kept",
    "to keep it, call {nonleaf}`.retain_grad()` before backward",
    "if a parameter was meant, read the leaf's `.grad`: an assignment may have replaced the leaf by a result",
    when=Refusal.stands_alone,
)
