"""When a checkpointed region was run again for backward, it saved more tensors than the first time.

A checkpoint counts on the region doing the same both times. It is met with early stop switched off, or when something
that the region reads, as a counter or a flag, lets it do more in its second run.

## Fails

```python
import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

options = {"squash": False}


def block(value):
    wave = value.sin()
    return wave.exp().sin() if options["squash"] else wave  # rejected_here


weight = torch.tensor([1.0, 2.0], requires_grad=True)
with set_checkpoint_early_stop(False):
    result = checkpoint(block, weight, use_reentrant=False)  # called_here
options["squash"] = True  # state_changed_here
result.sum().backward()  # needed_here
```

## Fixed

```python
import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop


def block(value, squash):
    wave = value.sin()
    return wave.exp().sin() if squash else wave


weight = torch.tensor([1.0, 2.0], requires_grad=True)
with set_checkpoint_early_stop(False):
    result = checkpoint(block, weight, False, use_reentrant=False)
result.sum().backward()
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
        "checkpoint-more-saved-in-recomputation",
        "the checkpointed function saved more tensors when it was run again",
        "backward needs what the function saved, and running it again must save the same tensors",
    )
