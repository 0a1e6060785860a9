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
