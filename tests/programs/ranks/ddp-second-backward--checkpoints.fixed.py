import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = torch.nn.Linear(3, 3)

    def forward(self, batch):
        once = checkpoint(self.step, batch, use_reentrant=False)
        return checkpoint(self.step, once, use_reentrant=False)


model = torch.nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    (model(torch.randn(2, 3, requires_grad=True)) ** 2).sum().backward()
    optimizer.step()
dist.destroy_process_group()
