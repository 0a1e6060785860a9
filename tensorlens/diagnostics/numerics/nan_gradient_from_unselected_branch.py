"""A gradient came out as NaN although `where`, or a mask, had removed the bad values from the result.

`torch.where` chooses between values, and both branches are computed. In backward the branch that was not chosen gets a
gradient of zero, and if the derivative in there is infinite, zero times infinity is NaN. The values have to be made
safe before the operation; choosing afterwards is too late.

## Fails

```python
import torch

ratio = torch.tensor([0.0, 2.0], requires_grad=True)  # value_made_here
safe = torch.where(ratio > 0, ratio.sqrt(), torch.zeros(2))  # graph_built_here
safe.sum().backward()  # needed_here
print(ratio.grad)  # observed_here
```

## Fixed

```python
import torch

ratio = torch.tensor([0.0, 2.0], requires_grad=True)
inside = torch.where(ratio > 0, ratio, torch.ones(2))
safe = torch.where(ratio > 0, inside.sqrt(), torch.zeros(2))
safe.sum().backward()
print(ratio.grad)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.numerics._nonfinite import find_singular
from tensorlens.records.report import Diagnostic

CODE = "nan-gradient-from-unselected-branch"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    return find_singular(facts, CODE)
