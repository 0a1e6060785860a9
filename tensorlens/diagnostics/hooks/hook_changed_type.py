"""A hook returned a gradient of another data type, device or layout than the one it was given.

What a hook returns takes the place of the gradient in formulas that were chosen in the forward pass, for the type of
the tensor there.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def exact(gradient):
    return gradient.to(torch.float64) / 3  # returned_here


weight.register_hook(exact)  # hook_registered_here
weight.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def exact(gradient):
    return (gradient.to(torch.float64) / 3).to(gradient.dtype)


weight.register_hook(exact)
weight.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "hook-changed-type",
    (
        "returned_here",
        "hook_registered_here",
        "needed_here:calling",
    ),
    "a hook returned a gradient of another type",
    "{function} was given {given} and handed back {handed}: what comes next in the graph needs the type of the first",
    "convert back before returning: `.to(gradient.dtype)`, and likewise for the device",
    "to look at the gradient only, return nothing",
)
