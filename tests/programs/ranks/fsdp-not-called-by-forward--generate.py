import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)


class Writer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def generate(self, x):
        for _ in range(2):
            x = self.layer(x).relu()  # rejected_here
        return x


writer = fully_shard(Writer(), mesh=init_device_mesh("cpu", (2,)))
with torch.no_grad():
    print(writer.generate(torch.ones(1, 4)).shape)
dist.destroy_process_group()
