import torch
import torch.distributed as dist

dist.init_process_group("gloo")

from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook

torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
model.register_comm_hook(None, noop_hook)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
