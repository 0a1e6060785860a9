"""The same parameter stands in two groups of one optimizer.

Each group has its own learning rate, so it would be updated twice, and by two rules. Most often two modules share a
weight that was tied, or one group was made by exclusion and the exclusion missed it.

## Fails

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
decoder.weight = encoder.weight  # shared_here
groups = [{"params": encoder.parameters()}, {"params": decoder.parameters(), "lr": 0.01}]
optimizer = torch.optim.SGD(groups, lr=0.1)  # optimizer_made_here
```

## Fixed

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
decoder.weight = encoder.weight
groups = [{"params": encoder.parameters()}, {"params": [decoder.bias], "lr": 0.01}]
optimizer = torch.optim.SGD(groups, lr=0.1)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "parameter-in-two-groups",
    ("optimizer_made_here", "shared_here:module"),
    "one parameter stands in two groups of the optimizer",
    "each group has its own settings, so it would be updated twice, by two rules",
    "leave a shared parameter in one of the groups",
)
