"""Backward came to a custom operator that has no formula for it.

An operator made with `torch.library.custom_op` is opaque to autograd: what it does inside is not recorded. Its gradient
is given with `register_autograd`.

## Fails

```python
import torch


@torch.library.custom_op("page::triple", mutates_args=())
def triple(value: torch.Tensor) -> torch.Tensor:  # function_defined_here
    return value * 3


result = triple(torch.ones(2, requires_grad=True))  # called_here
result.sum().backward()  # needed_here
```

## Fixed

```python
import torch


@torch.library.custom_op("page::triple", mutates_args=())
def triple(value: torch.Tensor) -> torch.Tensor:
    return value * 3


triple.register_autograd(lambda ctx, gradient: gradient * 3)
result = triple(torch.ones(2, requires_grad=True))
result.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "custom-op-no-autograd-formula",
    (
        "needed_here",
        "called_here:operator",
        "function_defined_here:operator",
    ),
    "backward came to a custom operator that has no formula for it",
    "what a custom operator does inside is not recorded",
    "give it one with `register_autograd`",
)
