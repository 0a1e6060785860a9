import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.head = torch.nn.Linear(3, 3)

    def forward(self, batch):
        return self.head(self.first(batch))


model = torch.nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
out = model(torch.randn(4, 3))
loss = out.sum()
loss.backward()
dist.destroy_process_group()
