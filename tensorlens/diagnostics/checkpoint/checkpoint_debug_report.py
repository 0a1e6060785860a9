"""A checkpoint with `debug=True` found that its function did something else when it was run again, and shows both runs.

The report lists the operations of the forward pass and those of the second run, with the stack of each. Where the two
lists part is where the function did something else: something that it reads from outside was changed in between.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint

settings = {"keep": 1}


def block(value):
    return value[: settings["keep"]].exp().sum()


weight = torch.tensor([1.0, 2.0], requires_grad=True)
result = checkpoint(block, weight, use_reentrant=False, debug=True)  # called_here
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
result = checkpoint(block, weight, 1, use_reentrant=False, debug=True)
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
        "checkpoint-debug-report",
        "the checkpointed function did not do the same when it was run again",
        "backward needs what the function saved, and running it again must save the same tensors",
    )
