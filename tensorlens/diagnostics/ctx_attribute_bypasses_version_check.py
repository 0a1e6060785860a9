"""A custom function kept a tensor as an attribute of `ctx`, and the tensor was changed before backward.

`ctx.save_for_backward` notes the version of what it keeps, and backward refuses if it has changed. An attribute is a
plain reference: nobody checks it, and backward computes with whatever stands there by then.

## Fails

```python
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.value = value  # saved_here
        return value * value

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.value * gradient


weight = torch.tensor([2.0, 3.0], requires_grad=True)
hidden = weight * 1
loss = Square.apply(hidden).sum()
hidden.zero_()  # modified_here
loss.backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value * value

    @staticmethod
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        return 2 * value * gradient


weight = torch.tensor([2.0, 3.0], requires_grad=True)
hidden = weight * 1
loss = Square.apply(hidden).sum()
loss.backward()
print(weight.grad)
```
"""
