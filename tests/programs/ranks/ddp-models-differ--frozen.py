import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = torch.nn.Linear(3, 1)
if dist.get_rank() == 1:
    net.bias.requires_grad_(False)  # flag_changed_here
model = torch.nn.parallel.DistributedDataParallel(net)  # wrapped_here
dist.destroy_process_group()
