"""A checkpointed region was run again for backward after something that it reads had changed.

The region is not kept but computed once more, with the globals, parameters and settings of that moment. If they have
changed, the gradient belongs to another computation than the loss does. Only a difference in shapes or in the number of
tensors is noticed.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

factor = 2.0
weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(lambda value: (value * factor).square(), weight, use_reentrant=False)  # called_here
factor = 0.0  # state_changed_here
result.sum().backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

factor = 2.0
weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(lambda value, by: (value * by).square(), weight, factor, use_reentrant=False)
factor = 0.0
result.sum().backward()
print(weight.grad)
```
"""
