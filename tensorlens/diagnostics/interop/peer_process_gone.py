"""Another process of a `torch.distributed` group closed its connection while this one waited for it.

Collectives such as `all_reduce`, and the backward pass of `DistributedDataParallel`, exchange data with every process
of the group. When one of them ends, is killed or leaves the group, the others get this error wherever they next wait.
The line that raises is not at fault: the process that was gone has the cause in its own output.

## Fails

```python
import os
import tempfile

import torch
import torch.distributed as dist

path = tempfile.mkdtemp() + "/store"
rank = 0 if os.fork() else 1
dist.init_process_group("gloo", store=dist.FileStore(path, 2), rank=rank, world_size=2)
loss = torch.ones(1)
if rank == 1:
    os._exit(3)
os.wait()
dist.all_reduce(loss)  # rejected_here
```

## Fixed

```python
import os
import tempfile

import torch
import torch.distributed as dist

path = tempfile.mkdtemp() + "/store"
rank = 0 if os.fork() else 1
dist.init_process_group("gloo", store=dist.FileStore(path, 2), rank=rank, world_size=2)
loss = torch.ones(1)
dist.all_reduce(loss)
dist.destroy_process_group()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.rejected import refusals
from tensorlens.diagnostics.shared.wording import finding, fix, op_text
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    """Name the line that waited, and say that the cause is not in it."""
    for refusal in refusals(facts, "peer-process-gone"):
        waited = f" while {op_text(refusal.op)} waited for it" if refusal.op else ""
        yield finding(
            "peer-process-gone",
            refusal.severity,
            f"another process of the group closed its connection{waited}",
            "a process closes its connections when it ends, is killed or leaves the group; this one raised because of "
            "that, and what ended the other is not recorded here",
            [facts.label("rejected_here", refusal.site, "waits for the other processes here")],
            fixes=(fix("look at the output and the report of the process that ended first"),),
            evidence={"op": refusal.op, "message": refusal.message},
        )
