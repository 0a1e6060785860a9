"""In strict mode, the result of a function had no history.

With `strict=True` the functions of `torch.autograd.functional` refuse a result that autograd can't differentiate:
somewhere in the function the graph was cut. Without it, all derivatives would be zero.

## Fails

```python
import torch
from torch.autograd.functional import jacobian


def energy(state):
    return (state * 3).detach()  # graph_cut_here


jacobian(energy, torch.ones(2), strict=True)  # called_here
```

## Fixed

```python
import torch
from torch.autograd.functional import jacobian


def energy(state):
    return state * 3


jacobian(energy, torch.ones(2), strict=True)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "functional-strict-output-without-grad",
    ("called_here:given", "graph_cut_here:given"),
    "the result of the function has no history",
    "in strict mode {op} refuses a result that it can't differentiate",
    "take the cut out of the function",
)
