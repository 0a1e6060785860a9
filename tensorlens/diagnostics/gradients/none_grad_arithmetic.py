"""`.grad` was used in arithmetic, and it is None.

A gradient exists only after a backward pass that reached the leaf. An update written before the first backward, or for
a leaf that the loss does not depend on, computes with None instead of a tensor.

## Fails

```python
import torch

weight = torch.ones(2, requires_grad=True)
spare = torch.ones(2, requires_grad=True)  # leaf_made_here
(weight * 3).sum().backward()
step = weight.grad - spare.grad  # needed_here
```

## Fixed

```python
import torch

weight = torch.ones(2, requires_grad=True)
spare = torch.ones(2, requires_grad=True)
(weight * 3 + spare).sum().backward()
step = weight.grad - spare.grad
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.gradients._none_gradient import find_none_gradient
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_none_gradient(facts, "none-grad-arithmetic")
