"""A `state_dict()` that was kept as a snapshot changed together with the model.

`state_dict()` returns the model's own tensors, not copies: it is meant to be saved or loaded at once. Kept in a
variable, it shows what the parameters are now and not what they were, so the best weights so far turn into the last
ones.

## Fails

```python
import torch

layer = torch.nn.Linear(1, 1, bias=False)
best = layer.state_dict()  # shared_here
before = best["weight"].item()
with torch.no_grad():
    layer.weight.add_(5)  # modified_here
print(best["weight"].item() - before)  # observed_here
```

## Fixed

```python
import copy

import torch

layer = torch.nn.Linear(1, 1, bias=False)
best = copy.deepcopy(layer.state_dict())
before = best["weight"].item()
with torch.no_grad():
    layer.weight.add_(5)
print(best["weight"].item() - before)
```
"""
