"""`requires_grad_()` was called inside a function that `torch.func` transforms.

The transform decides itself what is differentiated: the arguments that were named to it. A flag set inside would mean
nothing to it.

## Fails

```python
import torch


def energy(value):
    value.requires_grad_()  # rejected_here
    return value.square().sum()


torch.func.grad(energy)(torch.ones(2))  # mode_entered_here
```

## Fixed

```python
import torch


def energy(value):
    return value.square().sum()


torch.func.grad(energy)(torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "func-requires-grad-inside",
    ("rejected_here", "mode_entered_here"),
    "{op} was called inside a transform of `torch.func`",
    "a transform decides itself what is differentiated: its arguments; it does not look at `requires_grad` or `.grad`",
    "leave it out, and name what to differentiate with `argnums`",
    "for the gradient of an inner value, make that value an argument of the function",
)
