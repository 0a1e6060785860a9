from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=60))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
total = torch.zeros(1)
for step in range(3):
    loss = model(torch.ones(2, 3)).sum()
    loss.backward()
    total += loss.detach()
    if step == 1:
        dist.all_reduce(total)
dist.destroy_process_group()
