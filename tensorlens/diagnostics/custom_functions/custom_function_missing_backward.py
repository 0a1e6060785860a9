"""Backward came to a custom function that has no `backward`.

The forward pass works without one, and its result requires grad. The function has to say how a gradient of its result
becomes a gradient of its input, even if the answer is to pass it on unchanged.

## Fails

```python
import torch


class Round(torch.autograd.Function):  # function_defined_here
    @staticmethod
    def forward(ctx, value):
        return value.round()


rounded = Round.apply(torch.ones(2, requires_grad=True))  # called_here
rounded.sum().backward()  # needed_here
```

## Fixed

```python
import torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


rounded = Round.apply(torch.ones(2, requires_grad=True))
rounded.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "custom-function-missing-backward",
    (
        "needed_here",
        "called_here",
        "function_defined_here:class",
    ),
    "backward came to a custom function that has no `backward`",
    "the function has to say how a gradient of its result becomes one of its input",
    "define `backward` as a static method, if only to pass the gradient on",
)
