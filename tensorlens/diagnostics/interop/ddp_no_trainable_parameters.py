"""A module without any parameter that requires grad was wrapped in `DistributedDataParallel`.

The wrapper exchanges gradients between processes. A frozen module has none, so there is nothing to do, and the wrapper
refuses: most often the freezing was not meant for all of it.

## Fails

```python
import tempfile

import torch
import torch.distributed as dist

store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
teacher = torch.nn.Linear(2, 1).requires_grad_(False)  # leaf_made_here
torch.nn.parallel.DistributedDataParallel(teacher)  # rejected_here
```

## Fixed

```python
import tempfile

import torch
import torch.distributed as dist

store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
student = torch.nn.Linear(2, 1)
torch.nn.parallel.DistributedDataParallel(student)
dist.destroy_process_group()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "ddp-no-trainable-parameters",
    ("rejected_here", "leaf_made_here:unreached"),
    "a module without a parameter that requires grad was given to `DistributedDataParallel`",
    "the wrapper averages gradients between processes, and this module has none",
    "use a frozen module as it is; wrap only what is trained",
    "where it should train, call `requires_grad_()` before it is wrapped",
)
