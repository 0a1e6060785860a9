"""A `backward` gave another gradient when it was run again with the same input.

`gradcheck` runs backward twice. A result that changes depends on something from outside: a counter, a random number, a
cache, or an order of additions that is not fixed.

## Fails

```python
import torch

runs = []


class Drifting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 3

    @staticmethod
    def backward(ctx, gradient):
        runs.append(1)
        return 3 * gradient * (1 + 1e-7 * len(runs))  # returned_here


value = torch.ones(2, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Drifting.apply, (value,))  # called_here
```

## Fixed

```python
import torch


class Steady(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 3

    @staticmethod
    def backward(ctx, gradient):
        return 3 * gradient


value = torch.ones(2, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(Steady.apply, (value,))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "gradcheck-not-reentrant",
    ("called_here:given", "returned_here:checked"),
    "backward gives another gradient each time it runs",
    "{op} runs it twice with the same input and compares",
    "compute the gradient from what `forward` saved alone",
    "where additions run in no fixed order, allow for it: `nondet_tol=...`",
)
