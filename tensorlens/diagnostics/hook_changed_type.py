"""A hook returned a gradient of another data type, device or layout than the one it was given.

What a hook returns takes the place of the gradient in formulas that were chosen in the forward pass, for the type of
the tensor there.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def exact(gradient):
    return gradient.to(torch.float64) / 3  # returned_here


weight.register_hook(exact)  # hook_registered_here
weight.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def exact(gradient):
    return (gradient.to(torch.float64) / 3).to(gradient.dtype)


weight.register_hook(exact)
weight.sum().backward()
```
"""
