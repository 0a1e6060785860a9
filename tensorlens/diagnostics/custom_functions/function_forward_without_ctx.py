"""The `forward` of a custom function takes one argument less than it is called with: `ctx` is missing.

`apply` passes a context first, in which `forward` stores what `backward` will need. Only a function that defines
`setup_context` has a `forward` without it.

## Fails

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(value):  # function_defined_here
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


Double.apply(torch.ones(2, requires_grad=True))  # called_here
```

## Fixed

```python
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


Double.apply(torch.ones(2, requires_grad=True))
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.roles.custom_functions import forward_not_callable

find = rejected(
    "function-forward-without-ctx",
    (
        "function_defined_here:refused-forward",
        "called_here",
    ),
    "a `forward` can't take what the function was called with",
    "without a `setup_context` of its own, `forward` is given the context first and the arguments after it",
    "let `forward` take the context as its first parameter, or add a `setup_context`",
    when=forward_not_callable,
)
