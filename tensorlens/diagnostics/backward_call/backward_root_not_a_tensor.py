"""`torch.autograd.backward` was asked to start from something that is not a tensor.

It takes one result or a list of them. A number among them has no history to go back through.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
losses = [weight.sum(), 0.5]  # value_made_here
torch.autograd.backward(losses)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
losses = [weight.sum()]
torch.autograd.backward(losses)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "backward-root-not-a-tensor",
    ("needed_here", "value_made_here:plain"),
    "{op} was asked to start from something that is not a tensor",
    "a number has no history to go back through",
    "pass only tensors that were computed from what requires grad",
)
