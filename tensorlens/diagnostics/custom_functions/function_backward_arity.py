"""The `backward` of a custom function takes fewer gradients than `forward` returns tensors.

`backward` is called with the context and one gradient for each tensor that `forward` returned, also for those that the
loss did not use.

## Fails

```python
import torch


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2, value * 3

    @staticmethod
    def backward(ctx, gradient):  # function_defined_here
        return gradient * 5


twice, thrice = Split.apply(torch.ones(2, requires_grad=True))  # called_here
(twice + thrice).sum().backward()  # needed_here
```

## Fixed

```python
import torch


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2, value * 3

    @staticmethod
    def backward(ctx, first, second):
        return first * 2 + second * 3


twice, thrice = Split.apply(torch.ones(2, requires_grad=True))
(twice + thrice).sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected
from tensorlens.diagnostics.shared.roles.hooks import not_callable

find = rejected(
    "function-backward-arity",
    (
        "function_defined_here:refused",
        "called_here",
        "needed_here:calling",
    ),
    "a `backward` takes another number of gradients than its function has results",
    "it is called with the context and one gradient for each tensor that `forward` returned",
    "take one gradient for each result, also for those that the loss does not use",
    when=not_callable,
)
