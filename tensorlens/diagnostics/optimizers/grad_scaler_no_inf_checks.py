"""`GradScaler.step` found no gradient in any parameter of the optimizer.

The scaler looks through the gradients for infinities before it steps. If there are none to look at, the loss did not
depend on these parameters: the graph was cut on the way, the optimizer holds parameters that were replaced, or the
gradients were reset after backward.

## Fails

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)  # optimizer_made_here
scaler = torch.amp.GradScaler("cpu")
code = encoder(torch.ones(1, 2)).detach()  # graph_cut_here
scaler.scale(decoder(code).sum()).backward()
scaler.step(optimizer)  # needed_here
```

## Fixed

```python
import torch

encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
code = encoder(torch.ones(1, 2))
scaler.scale(decoder(code).sum()).backward()
scaler.step(optimizer)
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "grad-scaler-no-inf-checks",
    ("needed_here", "optimizer_made_here", "graph_cut_here:gradient", "replaced_here"),
    "`GradScaler` found no gradient in any parameter of the optimizer",
    "the loss did not depend on them, they were replaced, or their gradients were reset",
    "see that the loss is computed from the parameters that the optimizer was given",
)
