import torch
import torch.distributed as dist

dist.init_process_group("gloo")

from torch.distributed.optim import ZeroRedundancyOptimizer

torch.manual_seed(dist.get_rank())
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
model = torch.nn.parallel.DistributedDataParallel(net)
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
