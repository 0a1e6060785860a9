"""`.grad` was used as a tensor, and it is None.

A leaf has a gradient only after a backward pass that reached it. Before the first pass, for a frozen leaf, for one that
the loss does not depend on, and for a tensor that is not a leaf at all (an update such as `w = w - lr * w.grad` or a
move such as `w.double()` makes a new, computed tensor), `.grad` stays None, and so has no `zero_()` or `norm()`.

## Fails

```python
import torch

weight = torch.ones(2, requires_grad=True)  # leaf_made_here
loss = (weight * 3).sum()
print(weight.grad.norm())  # needed_here
loss.backward()
```

## Fixed

```python
import torch

weight = torch.ones(2, requires_grad=True)
loss = (weight * 3).sum()
loss.backward()
print(weight.grad.norm())
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.gradients._none_gradient import find_none_gradient
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_none_gradient(facts, "none-grad-attribute")
