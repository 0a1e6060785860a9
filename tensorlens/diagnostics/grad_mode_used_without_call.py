"""`torch.no_grad`, or one of its kin, stands in a `with` statement without parentheses.

`torch.no_grad` is a class. The block needs an instance of it, which calling it makes: `with torch.no_grad():`. As a
decorator it works with and without parentheses.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1)
with torch.no_grad:  # rejected_here
    layer(torch.ones(1, 2))
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 1)
with torch.no_grad():
    layer(torch.ones(1, 2))
```
"""
