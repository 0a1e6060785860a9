"""A second derivative was asked for of a function whose result is not a single number.

The Hessian of one number is a matrix. A function with several results has one for each of them: sum them, or take the
`jacobian` of a `jacobian`.

## Fails

```python
import torch
from torch.autograd.functional import hessian


def energy(state):
    return state.pow(2)  # returned_here


hessian(energy, torch.ones(2))  # called_here
```

## Fixed

```python
import torch
from torch.autograd.functional import hessian


def energy(state):
    return state.pow(2).sum()


hessian(energy, torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "functional-hessian-not-scalar",
    ("called_here:given", "returned_here:given"),
    "the function that was given to {op} returned more than one number",
    "second derivatives are taken of one number",
    "return a sum: `.sum()`",
    "or use `jacobian` twice, where each result is meant",
)
