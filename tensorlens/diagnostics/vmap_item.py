"""Inside `vmap` a value was taken out of a tensor as a Python number.

The function runs once for the whole batch, so there is no single number: each sample has its own.

## Fails

```python
import torch


def scale(value):
    return value / value.sum().item()  # rejected_here


torch.vmap(scale)(torch.ones(3, 2))  # mode_entered_here
```

## Fixed

```python
import torch


def scale(value):
    return value / value.sum()


torch.vmap(scale)(torch.ones(3, 2))
```
"""
