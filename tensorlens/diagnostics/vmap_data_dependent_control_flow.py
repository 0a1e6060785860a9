"""Inside `vmap` a condition depends on a value of the batch.

The function runs once for the whole batch, and `if` can take one way only, while samples may differ. `torch.where`
computes both ways and chooses for each sample.

## Fails

```python
import torch


def fold(value):
    return value if value.sum() > 0 else -value  # rejected_here


torch.vmap(fold)(torch.ones(3, 2))  # mode_entered_here
```

## Fixed

```python
import torch


def fold(value):
    return torch.where(value.sum() > 0, value, -value)


torch.vmap(fold)(torch.ones(3, 2))
```
"""
