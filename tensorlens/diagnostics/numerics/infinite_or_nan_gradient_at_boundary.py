"""A gradient is infinite or NaN because an operation was given a value at the edge of where it can be differentiated.

The forward value is fine there: the square root of 0 is 0, the length of a zero vector is 0. The slope is not: it is
infinite for the root, and undefined for a length written as a root of a sum of squares. One such element spoils the
gradient of everything that shares it.

## Fails

```python
import torch

gap = torch.tensor([0.0, 1.0], requires_grad=True)  # value_made_here
length = gap.pow(0.5).sum()  # graph_built_here
length.backward()  # needed_here
print(gap.grad)  # observed_here
```

## Fixed

```python
import torch

gap = torch.tensor([0.0, 1.0], requires_grad=True)
length = (gap + 1e-6).pow(0.5).sum()
length.backward()
print(gap.grad)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._nonfinite import find_singular
from tensorlens.records.report import Diagnostic

CODE = "infinite-or-nan-gradient-at-boundary"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    return find_singular(facts, CODE)
