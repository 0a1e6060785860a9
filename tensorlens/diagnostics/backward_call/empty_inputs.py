"""A gradient was asked for with respect to nothing: the list of inputs is empty.

An empty list is most often the result of a filter that left nothing over: all parameters are frozen, or the names did
not match. To compute the gradients of all leaves, the argument is left out.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
chosen = [p for p in [weight] if p.ndim > 1]  # value_made_here
weight.sum().backward(inputs=chosen)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
chosen = [p for p in [weight] if p.ndim > 1]
weight.sum().backward(inputs=chosen or [weight])
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "empty-inputs",
    ("needed_here", "value_made_here:plain"),
    "{op} was asked for the gradients of nothing",
    "the list of tensors to differentiate with respect to is empty",
    "look at what made the list: a filter may have left nothing over",
    "to compute the gradients of all leaves, leave `inputs` out",
)
