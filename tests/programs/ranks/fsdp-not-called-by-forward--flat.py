import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)


class Writer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def generate(self, x):
        return self.layer(x).relu()  # rejected_here


model = FullyShardedDataParallel(Writer(), device_id=torch.device("cpu"))  # wrapped_here
print(model.module.generate(torch.ones(1, 4)).shape)
dist.destroy_process_group()
