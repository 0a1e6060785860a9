import torch
import torch.distributed as dist

dist.init_process_group("gloo")

torch.manual_seed(dist.get_rank())
maker = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 3))
judge = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
of_maker = torch.optim.Adam(maker.parameters(), lr=0.1)
of_judge = torch.optim.Adam(judge.parameters(), lr=0.1)
for _ in range(3):
    made = maker(torch.randn(4, 2))
    of_judge.zero_grad()
    (judge(made.detach()).sum() - judge(torch.randn(4, 3)).sum()).backward()
    of_judge.step()
    of_maker.zero_grad()
    judge(made).sum().backward()
    of_maker.step()
dist.destroy_process_group()
