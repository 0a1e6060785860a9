"""`DistributedDataParallel` saw the gradient of one parameter become ready twice in one backward pass.

Each parameter is to be ready once, and then its gradient is exchanged. A checkpoint of the old kind runs a backward of
its own, so a module that stands in two of them is ready twice, and so is one that is used outside of `forward`.

## Fails

```python
import tempfile

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = torch.nn.Linear(2, 2)

    def forward(self, batch):
        once = checkpoint(self.step, batch, use_reentrant=True)
        return checkpoint(self.step, once, use_reentrant=True)  # called_here


net = torch.nn.parallel.DistributedDataParallel(Twice(), find_unused_parameters=True)
net(torch.ones(1, 2, requires_grad=True)).sum().backward()  # needed_here
```

## Fixed

```python
import tempfile

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = torch.nn.Linear(2, 2)

    def forward(self, batch):
        once = checkpoint(self.step, batch, use_reentrant=False)
        return checkpoint(self.step, once, use_reentrant=False)


net = torch.nn.parallel.DistributedDataParallel(Twice())
net(torch.ones(1, 2, requires_grad=True)).sum().backward()
dist.destroy_process_group()
```
"""
