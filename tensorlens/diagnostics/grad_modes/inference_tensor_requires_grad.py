"""A tensor that was made in inference mode was asked to require grad.

Such a tensor has no version counter, so autograd could not tell whether it was changed between forward and backward. It
cannot take part in training, not even as a parameter.

## Fails

```python
import torch

with torch.inference_mode():  # mode_entered_here
    start = torch.zeros(2)  # value_made_here
start.requires_grad_()  # rejected_here
```

## Fixed

```python
import torch

with torch.inference_mode():
    start = torch.zeros(2)
start = start.clone().requires_grad_()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "inference-tensor-requires-grad",
    ("rejected_here", "value_made_here", "mode_entered_here"),
    "{op} asks for gradients of a tensor that was made in inference mode",
    "such a tensor has no version counter and can't take part in training",
    "take a normal copy outside the block first: `.clone()`",
    "or make it under `torch.no_grad()` in place of inference mode",
)
