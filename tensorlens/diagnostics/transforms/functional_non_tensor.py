"""A function of `torch.autograd.functional` was given, or its function returned, something that is not a tensor.

Inputs and results have to be tensors, or tuples of tensors: a number or a list has no history to differentiate.

## Fails

```python
import torch
from torch.autograd.functional import jacobian


def total(state):
    return state.sum().item()  # value_made_here


jacobian(total, torch.ones(2))  # called_here
```

## Fixed

```python
import torch
from torch.autograd.functional import jacobian


def total(state):
    return state.sum()


jacobian(total, torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "functional-non-tensor",
    ("called_here:given", "value_made_here:given"),
    "{op} met something that is not a tensor",
    "what goes into the function and what it returns have to be tensors, or tuples of them",
    "make it a tensor; in the function, leave `item()` and `tolist()` out",
)
