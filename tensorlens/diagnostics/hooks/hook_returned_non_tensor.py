"""A hook returned something that is neither a tensor nor None.

A hook may return a new gradient, or None to leave it as it is. A number that is to be logged has to go elsewhere:
returned, it would become the gradient.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def measure(gradient):
    return float(gradient.norm())  # returned_here


weight.register_hook(measure)  # hook_registered_here
weight.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
norms = []


def measure(gradient):
    norms.append(float(gradient.norm()))


weight.register_hook(measure)
weight.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "hook-returned-non-tensor",
    (
        "returned_here",
        "hook_registered_here",
        "needed_here:calling",
    ),
    "a hook returned something that is no gradient",
    "what a hook hands back replaces the gradient, and {function} handed back {handed}",
    "return nothing to leave the gradient as it is, or a tensor to replace it",
    "to collect a number, append it to a list inside the hook",
)
