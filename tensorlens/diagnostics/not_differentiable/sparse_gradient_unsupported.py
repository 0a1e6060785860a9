"""An optimizer came upon a sparse gradient that it cannot use.

An embedding with `sparse=True` gives gradients for the rows that were used only. Optimizers that keep averages for
every element, as Adam does, need all of them.

## Fails

```python
import torch

table = torch.nn.Embedding(4, 2, sparse=True)
optimizer = torch.optim.Adam(table.parameters())  # optimizer_made_here
table(torch.tensor([1])).sum().backward()  # graph_built_here
optimizer.step()  # needed_here
```

## Fixed

```python
import torch

table = torch.nn.Embedding(4, 2, sparse=True)
optimizer = torch.optim.SparseAdam(table.parameters())
table(torch.tensor([1])).sum().backward()
optimizer.step()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "sparse-gradient-unsupported",
    ("needed_here", "optimizer_made_here", "graph_built_here:use"),
    "the optimizer came upon a gradient of a layout that it can't use",
    "it keeps averages for every element, and a sparse gradient has only some",
    "use an optimizer for sparse gradients, `SparseAdam` or plain `SGD`",
    "or make the embedding with `sparse=False`",
)
