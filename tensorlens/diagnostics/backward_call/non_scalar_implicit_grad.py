"""Backward was started, without a gradient to start from, at a tensor that has more than one element.

Backward computes how one number depends on the parameters, and begins with the derivative of that number with respect
to itself: 1. A tensor of several elements has no such single derivative. Each element could count with any weight, and
PyTorch does not pick one: sum and mean, for example, give different gradients. Usually a reduction is missing: a
criterion with `reduction="none"`, or a loss that was never averaged over the batch.

`backward(gradient=weights)` is right where the weights are known: one number for each element, in a tensor of the same
shape. The result is the gradient of `(tensor * weights).sum()`; with ones it is that of the sum. It does not give one
gradient for each element, and it is the wrong cure for a loss that was to be averaged: the gradient of the sum is as
many times larger as there are elements. For the derivative of every element, use `torch.autograd.functional.jacobian`.

## Fails

```python
import torch

scale = torch.tensor([0.5, 2.0], requires_grad=True)
errors = (scale * 3 - 1) ** 2  # value_made_here
errors.backward()  # needed_here
```

## Fixed

```python
import torch

scale = torch.tensor([0.5, 2.0], requires_grad=True)
errors = (scale * 3 - 1) ** 2
errors.mean().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "non-scalar-implicit-grad",
    ("needed_here", "value_made_here:first"),
    "{op} was started from {value}, which has more than one element",
    "backward begins with the gradient 1 of a single number; for several elements it would have to guess their weights",
    "reduce it to one number first: `.mean()` or `.sum()`, whichever the loss means",
    "or pass the weight of each element: `backward(gradient=torch.ones_like(...))` gives the gradient of the sum",
)
