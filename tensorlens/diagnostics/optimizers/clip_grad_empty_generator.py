"""Gradients were to be clipped, and the list of parameters was empty.

`model.parameters()` gives a generator, which can be gone through once. If it was handed to an optimizer before, nothing
is left of it, and nothing is clipped.

## Fails

```python
import torch

layer = torch.nn.Linear(2, 1)
parameters = layer.parameters()
optimizer = torch.optim.SGD(parameters, lr=0.1)  # value_made_here
layer(torch.ones(1, 2)).sum().backward()
torch.nn.utils.clip_grad_norm_(parameters, 1.0)  # rejected_here
```

## Fixed

```python
import torch

layer = torch.nn.Linear(2, 1)
parameters = list(layer.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1)
layer(torch.ones(1, 2)).sum().backward()
torch.nn.utils.clip_grad_norm_(parameters, 1.0)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "clip-grad-empty-generator",
    ("rejected_here", "value_made_here:container"),
    "gradients were to be clipped, and no parameters were given",
    "the generator of parameters had been used up before, so nothing was clipped",
    "make a list of it once, `list(model.parameters())`, or call `model.parameters()` again",
)
