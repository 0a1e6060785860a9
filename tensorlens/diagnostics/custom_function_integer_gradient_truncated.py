"""The `backward` of a custom function returned integers, and the fractions of the gradient were lost.

PyTorch converts what `backward` returns to the data type of the input. Integers are converted as well, but what was cut
off on the way to them does not come back.

## Fails

```python
import torch


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value / 2

    @staticmethod
    def backward(ctx, gradient):
        return (gradient / 2).int()  # returned_here


weight = torch.tensor([1.0, 2.0], requires_grad=True)
Half.apply(weight).sum().backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value / 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient / 2


weight = torch.tensor([1.0, 2.0], requires_grad=True)
Half.apply(weight).sum().backward()
print(weight.grad)
```
"""
