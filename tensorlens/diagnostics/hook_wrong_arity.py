"""A hook was called with another number of arguments than it takes.

Each kind of hook is called in its own way: a hook of a tensor with the gradient, a full backward hook of a module with
the module, the gradients of its inputs and those of its outputs. Registering does not check it; the first backward
does.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def show(name, gradient):  # function_defined_here
    print(name, gradient)


weight.register_hook(show)  # hook_registered_here
weight.sum().backward()  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)


def show(gradient):
    print("weight", gradient)


weight.register_hook(show)
weight.sum().backward()
```
"""
