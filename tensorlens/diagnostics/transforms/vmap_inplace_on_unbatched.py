"""Inside `vmap` a value of the batch was written into a tensor that has no batch.

The function runs once for the whole batch. A tensor made inside it without looking at its arguments exists once, and
there is no room in it for a different value of each sample.

## Fails

```python
import torch


def fill(value):
    result = torch.zeros(2)  # base_made_here
    result[1] = value.sum()  # modified_here
    return result


torch.vmap(fill)(torch.ones(3, 2))  # mode_entered_here
```

## Fixed

```python
import torch


def fill(value):
    return torch.stack([torch.zeros(()), value.sum()])


torch.vmap(fill)(torch.ones(3, 2))
```
"""
