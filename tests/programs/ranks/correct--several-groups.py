import torch
import torch.distributed as dist

dist.init_process_group("gloo")

torch.manual_seed(dist.get_rank())
groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
own = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1), process_group=groups[dist.get_rank()])
shared = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD([*own.parameters(), *shared.parameters()], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    (own(torch.randn(4, 3)).sum() + shared(torch.randn(4, 3)).sum()).backward()
    optimizer.step()
dist.destroy_process_group()
