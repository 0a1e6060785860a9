"""The result of a custom function, which is a view of its input or the input itself, was changed in place.

The function has a backward of its own. If its result is a window onto its input, a change of it reaches the input past
that backward, and the gradient would no longer be what the function defines. Full backward hooks of modules are made in
the same way: they pass inputs and outputs through such a function, which is why `inplace=True` next to them fails.

## Fails

```python
import torch


class Shift(torch.autograd.Function):  # function_defined_here
    @staticmethod
    def forward(ctx, values):
        return values.view(-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(2, 2)


grid = torch.ones(2, 2, requires_grad=True) * 2
flat = Shift.apply(grid)  # view_made_here
flat.mul_(3)  # modified_here
```

## Fixed

```python
import torch


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values.view(-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(2, 2)


grid = torch.ones(2, 2, requires_grad=True) * 2
flat = Shift.apply(grid)
flat = flat * 3
flat.sum().backward()
```
"""
