"""A hook returned a gradient of another shape than the one it was given.

What a hook returns takes the place of the gradient, and the next formula expects one value for each element of the
tensor. A mean or a sum over the gradient has lost that shape.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def level(gradient):
    return gradient.sum()  # returned_here


weight.register_hook(level)  # hook_registered_here
weight.square().sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def level(gradient):
    return gradient.sum().expand_as(gradient)


weight.register_hook(level)
weight.square().sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "hook-changed-size",
    (
        "returned_here",
        "hook_registered_here",
        "needed_here:calling",
    ),
    "a hook returned a gradient of another shape",
    "{function} was given {given} and handed back {handed}",
    "return a gradient of the shape that was given: `expand_as` spreads a reduced one over it",
    "to look at the gradient only, return nothing",
)
