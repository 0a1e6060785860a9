import torch
import torch.distributed as dist

dist.init_process_group("gloo")

torch.manual_seed(dist.get_rank())


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(3, 3)
        self.frozen = torch.nn.Linear(3, 3).requires_grad_(False)
        self.aux = torch.nn.Linear(3, 1)

    def forward(self, batch, with_aux):
        hidden = self.frozen(self.body(batch))
        return hidden.sum() + (self.aux(hidden).sum() if with_aux else 0)


model = torch.nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(4, 3), with_aux=step % 2 == 0).backward()
    optimizer.step()
dist.destroy_process_group()
