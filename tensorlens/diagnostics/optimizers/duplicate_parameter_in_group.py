"""The same parameter stands twice in one group of an optimizer.

It would be updated twice in each step. `model.parameters()` names a shared parameter once; lists that are joined from
several modules do not.

## Fails

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
decoder.weight = encoder.weight  # shared_here
every = [*encoder.parameters(), *decoder.parameters()]
optimizer = torch.optim.SGD(every, lr=0.1)  # optimizer_made_here
```

## Fixed

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
decoder.weight = encoder.weight
every = torch.nn.ModuleList([encoder, decoder]).parameters()
optimizer = torch.optim.SGD(every, lr=0.1)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "duplicate-parameter-in-group",
    ("optimizer_made_here", "shared_here:module"),
    "one parameter stands twice in a group of the optimizer",
    "it would be updated twice in each step",
    "name a shared parameter once: `parameters()` of a module that holds both parts does",
)
