"""A tensor that autograd saved for backward was changed through a way that its version number does not see.

Autograd notices stale values by a version number that every change in place raises. `.data`, a NumPy array or a DLPack
tensor on the same memory change the values and leave the number as it is. Backward then finds the version that it
expects, computes with the new values, and returns a wrong gradient without a word. PyTorch cannot notice; only the
order of save, change and backward gives it away.

## Fails

```python
import torch

weight = torch.tensor([2.0, 3.0], requires_grad=True)
scaled = weight * 1.0
loss = (scaled * scaled).sum()  # saved_here
scaled.data.fill_(0.0)  # modified_here
loss.backward()  # needed_here
print(weight.grad)  # observed_here
```

## Fixed

```python
import torch

weight = torch.tensor([2.0, 3.0], requires_grad=True)
scaled = weight * 1.0
loss = (scaled * scaled).sum()
loss.backward()
scaled = torch.zeros_like(scaled)
print(weight.grad)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.silent_saved_tensor import find_overwritten
from tensorlens.records.report import Diagnostic

CODE = "unversioned-write-to-saved-tensor"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    return find_overwritten(facts, CODE)
