"""The result of a custom function, which is a view of its input or the input itself, was changed in place.

The function has a backward of its own. If its result is a window onto its input, a change of it reaches the input past
that backward, and the gradient would no longer be what the function defines. Full backward hooks of modules are made in
the same way: they pass inputs and outputs through such a function, which is why `inplace=True` next to them fails.

## Fails

```python
import torch


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values.view(-1)  # function_defined_here

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

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "custom-function-view-modified-inplace",
    ("modified_here", "view_made_here", "function_defined_here:returned", "hook_registered_here:module"),
    "{view} came out of a custom function as a view and was changed in place",
    "the change would reach the function's input past its `backward`; full backward hooks make such views of a module's"
    " inputs and results",
    "change a new tensor: use the out-of-place form, or {view}`.clone()` first",
)
