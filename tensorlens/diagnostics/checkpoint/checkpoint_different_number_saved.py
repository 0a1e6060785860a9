"""When a checkpointed region was run again for backward, it saved another number of tensors than the first time.

A checkpoint keeps no intermediate results and computes them again in backward. It counts on the region doing the same
both times. Between the two, something that the region reads was changed: the training mode, a flag, a global.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.1), torch.nn.Linear(2, 1))
batch = torch.ones(1, 2, requires_grad=True)
result = checkpoint(model, batch, use_reentrant=False)  # called_here
model.eval()  # state_changed_here
result.sum().backward()  # needed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.1), torch.nn.Linear(2, 1))
batch = torch.ones(1, 2, requires_grad=True)
result = checkpoint(model, batch, use_reentrant=False)
result.sum().backward()
model.eval()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.checkpoint._recomputation import find_rerun
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    yield from find_rerun(
        facts,
        "checkpoint-different-number-saved",
        "the checkpointed function saved another number of tensors when it was run again",
        "backward needs what the function saved, and running it again must save the same tensors",
    )
