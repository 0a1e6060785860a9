"""A hook changed the gradient in place that it was given, and other parts of the graph got the changed one.

Autograd does not copy a gradient for each of its receivers: the two inputs of a sum are given the same tensor. A hook
that wants another gradient returns a new one.

## Fails

```python
import torch

first = torch.ones(2, requires_grad=True)
second = torch.ones(2, requires_grad=True)


def enlarge(gradient):
    gradient.mul_(10)  # modified_here


first.register_hook(enlarge)  # hook_registered_here
(first + second).backward(torch.ones(2))  # needed_here
print(second.grad)  # observed_here
```

## Fixed

```python
import torch

first = torch.ones(2, requires_grad=True)
second = torch.ones(2, requires_grad=True)


def enlarge(gradient):
    return gradient * 10


first.register_hook(enlarge)
(first + second).backward(torch.ones(2))
print(second.grad)
```
"""
