import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
mesh = init_device_mesh("cpu", (2,))
net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3), torch.nn.LayerNorm(3))
for layer in (net[0], net[2]):
    fully_shard(layer, mesh=mesh)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.AdamW(net.parameters())
torch.manual_seed(dist.get_rank())
for _ in range(3):
    optimizer.zero_grad()
    for last in (False, True):
        net.set_requires_gradient_sync(last)
        net(torch.randn(2, 4)).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
net.eval()
with torch.no_grad():
    print(net(torch.ones(1, 4)).shape)
dist.destroy_process_group()
