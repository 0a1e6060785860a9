import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
base, adapter = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
base.requires_grad_(False)
net = torch.nn.Sequential(base, adapter)
model = FullyShardedDataParallel(net, device_id=torch.device("cpu"))  # rejected_here
model(torch.randn(3, 4)).sum().backward()
dist.destroy_process_group()
