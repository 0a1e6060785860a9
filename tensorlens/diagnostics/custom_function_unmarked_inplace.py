"""A custom function changed its input in place and did not say so.

Inside `forward` nothing is recorded. If an input is changed there without `mark_dirty`, the caller's tensor has new
values and the history of the old ones, and its gradient is that of the old ones.

## Fails

```python
import torch


class Grow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        value.mul_(3)  # modified_here
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 1
grown = Grow.apply(hidden)  # called_here
hidden.sum().backward()  # needed_here
print(hidden, weight.grad)  # observed_here
```

## Fixed

```python
import torch


class Grow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight * 1
grown = Grow.apply(hidden)
grown.sum().backward()
print(grown, weight.grad)
```
"""
