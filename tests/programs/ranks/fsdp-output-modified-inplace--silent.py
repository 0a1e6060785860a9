import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.second(self.first(x).relu()).squeeze(0)


mesh = init_device_mesh("cpu", (2,))
net = fully_shard(Block(), mesh=mesh)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
x = torch.randn(1, 3, 4)
for _ in range(2):
    optimizer.zero_grad()
    y = net(x)  # view_made_here
    y -= 1  # modified_here
    y.square().mean().backward()  # needed_here
    optimizer.step()
dist.destroy_process_group()
