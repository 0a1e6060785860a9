import torch
import torch.distributed as dist

dist.init_process_group("gloo")

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
own = torch.nn.Linear(3, 1 + dist.get_rank())
optimizer = torch.optim.SGD([*model.parameters(), *own.parameters()], lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    optimizer.zero_grad()
    (model(torch.randn(4, 3)).sum() + own(torch.randn(4, 3)).sum()).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    optimizer.step()
dist.destroy_process_group()
