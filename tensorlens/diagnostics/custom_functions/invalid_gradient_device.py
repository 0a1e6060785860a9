"""A backward function returned a gradient on another device than the input that it belongs to.

A gradient lies where its tensor lies. A function that moves its work to another device has to move the gradient back.

## Fails

```python
import torch


class Remote(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.to("meta")  # returned_here


moved = Remote.apply(torch.ones(2, requires_grad=True))  # called_here
moved.sum().backward()  # needed_here
```

## Fixed

```python
import torch


class Remote(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


moved = Remote.apply(torch.ones(2, requires_grad=True))
moved.sum().backward()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "invalid-gradient-device",
    (
        "returned_here",
        "called_here",
        "needed_here:calling",
    ),
    "a `backward` returned a gradient on another device than the input",
    "{function} was given {given} and handed back {handed}",
    "move the gradient to the input's device before returning it",
)
