import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.head = torch.nn.Linear(3, 3)

    def forward(self, batch):
        return checkpoint(self.head, self.first(batch), use_reentrant=False)


model = torch.nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
model(torch.randn(4, 3)).sum().backward()
dist.destroy_process_group()
