import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(3)
for step in range(3):
    dist.all_reduce(x)
dist.destroy_process_group()
