import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = torch.nn.Linear(3, 1 + dist.get_rank())  # leaf_made_here
model = torch.nn.parallel.DistributedDataParallel(net)  # wrapped_here
dist.destroy_process_group()
