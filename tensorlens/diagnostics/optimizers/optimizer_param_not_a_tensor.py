"""One of the parameters given to an optimizer is not a tensor.

A module in the list does not stand for its parameters, nor does a generator of them: the list has to hold the tensors
themselves.

## Fails

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
parts = [encoder, decoder]  # value_made_here
optimizer = torch.optim.SGD(parts, lr=0.1)  # optimizer_made_here
```

## Fixed

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
parts = [*encoder.parameters(), *decoder.parameters()]
optimizer = torch.optim.SGD(parts, lr=0.1)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "optimizer-param-not-a-tensor",
    ("optimizer_made_here", "value_made_here:container"),
    "the optimizer was given something that is not a tensor",
    "a module or a generator in the list does not stand for the parameters in it",
    "join the parameters: `[*encoder.parameters(), *decoder.parameters()]`",
)
