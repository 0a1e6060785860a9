import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(3, 3)
        self.aux = torch.nn.Linear(3, 1)  # leaf_made_here

    def forward(self, batch):
        hidden = self.body(batch)
        return hidden, self.aux(hidden)


model = torch.nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    out, extra = model(torch.randn(4, 3))  # called_here
    loss = out.sum() + extra.sum().item()  # graph_cut_here
    loss.backward()  # needed_here
    optimizer.step()
dist.destroy_process_group()
