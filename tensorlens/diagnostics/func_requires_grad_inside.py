"""`requires_grad_()` was called inside a function that `torch.func` transforms.

The transform decides itself what is differentiated: the arguments that were named to it. A flag set inside would mean
nothing to it.

## Fails

```python
import torch


def energy(value):
    value.requires_grad_()  # rejected_here
    return value.square().sum()


torch.func.grad(energy)(torch.ones(2))  # mode_entered_here
```

## Fixed

```python
import torch


def energy(value):
    return value.square().sum()


torch.func.grad(energy)(torch.ones(2))
```
"""
