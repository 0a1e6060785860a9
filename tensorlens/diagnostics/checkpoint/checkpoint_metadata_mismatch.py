"""When a checkpointed region was run again for backward, its tensors had other shapes or data types than the first
time.

A checkpoint computes the intermediate results again in backward and compares their shape, data type and device with
those of the forward pass. They differ if something that the region reads was changed in between, as a length, a list or
the autocast mode.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

settings = {"keep": 1}


def block(value):
    return value[: settings["keep"]].exp().sum()


weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(block, weight, use_reentrant=False)  # called_here
settings["keep"] = 2  # state_changed_here
result.backward()  # needed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint


def block(value, keep):
    return value[:keep].exp().sum()


weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(block, weight, 1, use_reentrant=False)
result.backward()
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
        "checkpoint-metadata-mismatch",
        "the checkpointed function made tensors of another shape or dtype when it was run again",
        "backward needs what the function saved, and running it again must give tensors of the same kind",
    )
