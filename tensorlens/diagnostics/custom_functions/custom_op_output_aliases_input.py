"""A custom operator returned one of its inputs, or a view of it.

What an operator returns has to be new memory, because autograd and the compiler treat its result as a tensor of its
own. An operator that writes into an input declares it in `mutates_args`.

## Fails

```python
import torch


@torch.library.custom_op("page::same", mutates_args=())
def same(value: torch.Tensor) -> torch.Tensor:
    return value  # returned_here


same(torch.ones(2))  # called_here
```

## Fixed

```python
import torch


@torch.library.custom_op("page::same", mutates_args=())
def same(value: torch.Tensor) -> torch.Tensor:
    return value.clone()


same(torch.ones(2))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "custom-op-output-aliases-input",
    (
        "called_here:operator",
        "returned_here:operator",
    ),
    "a custom operator returned its input",
    "the graph takes what an operator returns for a new tensor",
    "return a copy, or declare the argument in `mutates_args` and return nothing",
)
