"""Backward was given a different number of results and of gradients.

Each result that backward starts from has a gradient of its own to start with. Two results and one gradient do not
belong together; None stands for the gradient 1 of a result that is a single number.

## Fails

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
losses = [weight.sum(), weight.prod()]
starts = [torch.tensor(2.0)]  # value_made_here
torch.autograd.backward(losses, starts)  # needed_here
```

## Fixed

```python
import torch

weight = torch.tensor([1.0, 2.0], requires_grad=True)
losses = [weight.sum(), weight.prod()]
starts = [torch.tensor(2.0), None]
torch.autograd.backward(losses, starts)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-count-mismatch",
    ("needed_here", "value_made_here:plain"),
    "{op} was given a different number of results and of gradients",
    "each result that backward starts from needs a gradient of its own",
    "pass one gradient for each result; None stands for the gradient 1 of a single number",
)
