import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))  # wrapped_here
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + dist.get_rank()))
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()  # modified_here, needed_here
dist.destroy_process_group()
