"""`torch.func.grad` was given a function whose result is not a single number.

It computes how one number depends on the arguments. For several, `jacrev` or `vjp` is meant, or a sum is missing.

## Fails

```python
import torch


def shifted(value):
    return value + 1  # returned_here


torch.func.grad(shifted)(torch.ones(2))  # called_here
```

## Fixed

```python
import torch


def shifted(value):
    return (value + 1).square().sum()


torch.func.grad(shifted)(torch.ones(2))
```
"""
