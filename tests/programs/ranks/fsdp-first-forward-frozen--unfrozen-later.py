import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
mesh = init_device_mesh("cpu", (2,))
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float32)
body, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
net = torch.nn.Sequential(body, torch.nn.ReLU(), head)
for layer in (body, head, net):
    fully_shard(layer, mesh=mesh, mp_policy=policy)
body.requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for epoch in range(2):
    if epoch == 1:
        body.requires_grad_(True)  # flag_changed_here
    optimizer.zero_grad()
    net(torch.randn(3, 4)).square().mean().backward()  # called_here needed_here
    optimizer.step()
dist.destroy_process_group()
