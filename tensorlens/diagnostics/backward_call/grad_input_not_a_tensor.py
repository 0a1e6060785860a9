"""A gradient was asked for with respect to something that is not a tensor.

The inputs of `autograd.grad` and of `backward(inputs=...)` are tensors of the recorded graph. A name, None or a module
in the list has no gradient; for a module, its parameters are meant.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wanted = [weight, None]  # value_made_here
torch.autograd.grad(weight.square().sum(), wanted)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
wanted = [weight]
torch.autograd.grad(weight.square().sum(), wanted)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-input-not-a-tensor",
    ("needed_here", "value_made_here:plain"),
    "{op} was asked for the gradient of something that is not a tensor",
    "only tensors of the recorded graph have gradients",
    "pass the tensors themselves; for a module, `list(model.parameters())`",
)
