"""Backward was started, without a gradient to start from, at a tensor that has more than one element.

Backward computes how one number depends on the parameters, and begins with the derivative of that number with respect
to itself: 1. A tensor of several elements has no such single derivative. Each element could count with any weight, and
PyTorch does not pick one: sum and mean, for example, give different gradients. Usually a reduction is missing: a
criterion with `reduction="none"`, or a loss that was never averaged over the batch.

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

from tensorlens.diagnostics.refusals import refused

find = refused(
    "non-scalar-implicit-grad",
    ("needed_here", "value_made_here:first"),
    "{op} was started from {value}, which has more than one element",
    "backward begins with the gradient 1 of a single number; for several elements it would have to guess their weights",
    "reduce it to one number first: `.mean()` or `.sum()`, whichever the loss means",
    "or pass the weight of each element: `backward(gradient=torch.ones_like(...))` gives the gradient of the sum",
)
