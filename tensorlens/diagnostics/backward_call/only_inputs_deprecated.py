"""`torch.autograd.grad` was called with `only_inputs`, which has no effect any more.

With `only_inputs=False` it once added gradients to the other leaves too. Today it returns the gradients that were asked
for and touches no `.grad`.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
torch.autograd.grad(weight.square().sum(), weight, only_inputs=False)  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
torch.autograd.grad(weight.square().sum(), weight)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "only-inputs-deprecated",
    ("rejected_here",),
    "`only_inputs` was passed, which has no effect any more",
    "`torch.autograd.grad` returns the gradients that were asked for and touches no `.grad`",
    "leave it out; to add gradients to all leaves, call `backward()`",
)
