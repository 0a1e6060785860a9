import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
class Net(torch.nn.Module):
    def __init__(self, names):
        super().__init__()
        for name in names:
            setattr(self, name, torch.nn.Linear(3, 3))

    def forward(self, batch):
        return self.b(self.a(batch))


names = "ab"
model = torch.nn.parallel.DistributedDataParallel(Net(names))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 3)).sum().backward()
optimizer.step()
dist.destroy_process_group()
