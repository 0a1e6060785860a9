"""A view was changed in place, or its source was, and the other changed with it.

Slices, `view`, `t()`, `expand` and broadcasting give windows onto memory that exists already. That makes them free of
cost, and it makes every change through one of them visible through all the others. `reshape` and `flatten` give a
window where they can and copy where they must, as after `t()`: whether a change through them is visible depends on the
layout of the tensor. `view` refuses where it would have to copy.

## Fails

```python
import torch

row = torch.zeros(3)
table = row.expand(2, 3)  # shared_here
row.fill_(7)  # modified_here
print(table)  # observed_here
```

## Fixed

```python
import torch

row = torch.zeros(3)
table = row.expand(2, 3).clone()
row.fill_(7)
print(table)
```
"""
