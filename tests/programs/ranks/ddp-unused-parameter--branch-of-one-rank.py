import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(3, 3)
        self.aux = torch.nn.Linear(3, 1)  # leaf_made_here

    def forward(self, batch, with_aux):
        hidden = self.body(batch)
        loss = hidden.sum()
        if with_aux:
            loss = loss + self.aux(hidden).sum()  # value_made_here
        return loss


model = torch.nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    with_aux = step == 0 or dist.get_rank() == 0
    loss = model(torch.randn(4, 3), with_aux)  # called_here
    loss.backward()  # needed_here
    optimizer.step()
dist.destroy_process_group()
