"""When a checkpointed region was run again for backward, nothing in its result required grad.

A checkpoint of the old kind says that its result requires grad if an input does, without looking inside. In backward
the region runs again, with recording, and there it turns out that a `detach()` or a `no_grad` in it cuts everything.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint


def block(value):
    return value.detach() + 1  # graph_cut_here


weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(block, weight, use_reentrant=True)  # called_here
result.sum().backward()  # needed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint


def block(value):
    return value + 1


weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(block, weight, use_reentrant=True)
result.sum().backward()
```
"""
