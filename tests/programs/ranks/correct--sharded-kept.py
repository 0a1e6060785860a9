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


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(), Block()

    def forward(self, x):
        h = self.one(x)
        h += 1
        return self.two(h)


mesh = init_device_mesh("cpu", (2,))
net = Net()
for block in (net.one, net.two):
    fully_shard(block, mesh=mesh, reshard_after_forward=False)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.AdamW(net.parameters())
torch.manual_seed(dist.get_rank())
for _ in range(2):
    optimizer.zero_grad()
    net(torch.randn(1, 3, 4)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
