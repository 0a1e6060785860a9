"""The `backward` of a custom function does not belong to its `forward`.

PyTorch takes what `backward` returns for the gradient. A forgotten factor or a wrong sign gives wrong gradients in each
step, and only a comparison with differences of the values, as `torch.autograd.gradcheck` makes, brings it to light.

## Fails

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
        return value * gradient  # returned_here


weight = torch.tensor([2.0, 3.0], requires_grad=True)
Square.apply(weight).sum().backward()  # needed_here
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
Square.apply(weight).sum().backward()
print(weight.grad)
```
"""
