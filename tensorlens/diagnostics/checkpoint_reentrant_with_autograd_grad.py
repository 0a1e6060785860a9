"""`autograd.grad`, or `backward(inputs=...)`, was used with a checkpoint of the old kind.

With `use_reentrant=True` a checkpoint runs a whole backward pass inside backward, which stores gradients in `.grad` and
knows nothing of the inputs that were asked for.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(torch.cos, weight, use_reentrant=True)  # called_here
torch.autograd.grad(wave.sum(), weight)  # needed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wave = checkpoint(torch.cos, weight, use_reentrant=False)
torch.autograd.grad(wave.sum(), weight)
```
"""
