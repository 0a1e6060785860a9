"""`torch.autograd.backward` was given the old keyword `grad_variables`.

Since tensors and variables are one, the keyword is called `grad_tensors`.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
torch.autograd.backward(weight.sum(), grad_variables=torch.tensor(2.0))  # rejected_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
torch.autograd.backward(weight.sum(), grad_tensors=torch.tensor(2.0))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-variables-deprecated",
    ("rejected_here",),
    "`torch.autograd.backward` was given the old keyword `grad_variables`",
    "tensors and variables have been one since PyTorch 0.4, and the keyword has another name",
    "write `grad_tensors` in its place",
)
