"""A computed tensor was changed in place under `no_grad`, so its value changed and its recorded derivative did not.

Under `no_grad` the change is not recorded. The tensor keeps the history of the value that it had before, and later
operations compute with the new one. The gradient that comes out belongs to neither computation: a factor of ten that
was multiplied in is missing from it.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight + 1  # graph_built_here
with torch.no_grad():  # grad_mode_off_here
    hidden.mul_(10)  # modified_here
hidden.sum().backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = weight + 1
hidden = hidden * 10
hidden.sum().backward()
print(weight.grad)
```
"""
