"""A `Parameter` was made from a computed tensor, and no gradient reaches what that was computed from.

`nn.Parameter(values)` takes the values and makes a new leaf of them, the beginning of another graph. A network whose
weights are computed by another network has to use them as they are.

## Fails

```python
import torch

source = torch.nn.Linear(1, 2)  # leaf_made_here
layer = torch.nn.Linear(2, 1, bias=False)
layer.weight = torch.nn.Parameter(source(torch.ones(1, 1)))  # graph_cut_here
layer(torch.ones(1, 2)).sum().backward()  # needed_here
print(source.weight.grad)  # observed_here
```

## Fixed

```python
import torch

source = torch.nn.Linear(1, 2)
generated = source(torch.ones(1, 1))
torch.nn.functional.linear(torch.ones(1, 2), generated).sum().backward()
print(source.weight.grad)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.training._without_gradient import find_cut_off
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_cut_off(facts, "parameter-built-from-nonleaf", lambda cut: cut.call.op == "nn.Parameter")
