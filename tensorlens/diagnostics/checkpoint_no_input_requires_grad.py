"""A checkpointed region was called with inputs none of which require grad.

The old implementation of checkpoint runs the region without recording and learns from the inputs whether gradients are
needed. If no input requires grad its result does not either, and the parameters inside the region get no gradient,
although they ask for one. It happens at the first layers of a network, whose input is plain data.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(2, 2)
batch = torch.rand(3, 2)  # value_made_here
hidden = checkpoint(layer, batch, use_reentrant=True)  # called_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(2, 2)
batch = torch.rand(3, 2)
hidden = checkpoint(layer, batch, use_reentrant=False)
hidden.sum().backward()
```
"""
