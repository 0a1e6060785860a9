"""Gradients were to be clipped, and their norm is not a finite number.

A gradient that is infinite or NaN cannot be scaled back to a limit. With `error_if_nonfinite=True` clipping stops here;
without it, it would spread the NaN to all the other gradients. The cause lies before, in the backward pass.

## Fails

```python
import torch

weight = torch.tensor([1e20, 2.0], requires_grad=True)
weight.pow(3).sum().backward()  # value_made_here
torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1e20, 2.0], requires_grad=True, dtype=torch.float64)
weight.pow(3).sum().backward()
torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "clip-grad-non-finite",
    ("needed_here", "value_made_here:gradient"),
    "the norm of the gradients is not a finite number",
    "an infinite or NaN gradient can't be scaled back to a limit",
    "look for its cause in the backward pass: `torch.autograd.set_detect_anomaly(True)` names the operation",
)
