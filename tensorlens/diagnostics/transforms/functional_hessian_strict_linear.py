"""In strict mode, a second derivative was asked for of a function that has none.

The first derivative of a linear function is a constant: it does not depend on the input, so there is nothing to
differentiate again. With `strict=True` that is refused; without it the second derivative is zero.

## Fails

```python
import torch
from torch.autograd.functional import hessian


def total(state):  # function_defined_here
    return (state * 3).sum()


hessian(total, torch.ones(2), strict=True)  # called_here
```

## Fixed

```python
import torch
from torch.autograd.functional import hessian


def total(state):
    return (state * 3).pow(2).sum()


hessian(total, torch.ones(2), strict=True)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "functional-hessian-strict-linear",
    ("called_here:given", "function_defined_here:given"),
    "the first derivative of the function does not depend on its input",
    "the function is linear, so {op} would return zeros, and strict mode refuses them",
    "leave `strict=True` out where a linear function is meant",
)
