"""The `backward` of a custom function returned None for an input that requires grad.

None says that there is no gradient, and PyTorch believes it: `.grad` of that parameter stays None and an optimizer
leaves it alone.

## Fails

```python
import torch


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, offset):
        return value + offset

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None  # returned_here


weight = torch.ones(2, requires_grad=True)
offset = torch.zeros(2, requires_grad=True)
Shift.apply(weight, offset).sum().backward()  # needed_here
print(offset.grad)  # observed_here
```

## Fixed

```python
import torch


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, offset):
        return value + offset

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient


weight = torch.ones(2, requires_grad=True)
offset = torch.zeros(2, requires_grad=True)
Shift.apply(weight, offset).sum().backward()
print(offset.grad)
```
"""
