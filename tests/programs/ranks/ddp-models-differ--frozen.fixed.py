import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = torch.nn.Linear(3, 1)
net.bias.requires_grad_(False)
model = torch.nn.parallel.DistributedDataParallel(net)
dist.destroy_process_group()
