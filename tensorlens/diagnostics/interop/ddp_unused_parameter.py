"""`DistributedDataParallel` waited for the gradient of a parameter that the loss did not use.

Processes exchange gradients when all parameters of a bucket have theirs. A parameter that took no part in the forward
pass never gets one, so the exchange of the last step has not ended when the next begins. `find_unused_parameters=True`
looks for such parameters, at some cost.

## Fails

```python
import tempfile

import torch
import torch.distributed as dist

store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used = torch.nn.Linear(2, 1)
        self.spare = torch.nn.Linear(2, 1)  # leaf_made_here

    def forward(self, batch):
        return self.used(batch)


net = torch.nn.parallel.DistributedDataParallel(Net())
for step in range(2):
    net(torch.ones(1, 2)).sum().backward()  # called_here, needed_here
```

## Fixed

```python
import tempfile

import torch
import torch.distributed as dist

store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used = torch.nn.Linear(2, 1)

    def forward(self, batch):
        return self.used(batch)


net = torch.nn.parallel.DistributedDataParallel(Net())
for step in range(2):
    net(torch.ones(1, 2)).sum().backward()
dist.destroy_process_group()
```
"""

from __future__ import annotations

from tensorlens.diagnostics.shared.rejected import rejected

find = rejected(
    "ddp-unused-parameter",
    ("needed_here", "called_here:module", "leaf_made_here:unreached"),
    "{leaf} got no gradient in the round before, and `DistributedDataParallel` still waits for it",
    "each round ends when every parameter that required grad when the module was wrapped has its gradient",
    "leave parameters that are not used out of the module, or freeze them before it is wrapped",
    "where the path changes from round to round, pass `find_unused_parameters=True`",
)
