import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
model = torch.nn.parallel.DistributedDataParallel(net)  # wrapped_here
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train_step(batch):
    optimizer.zero_grad()
    loss = net(batch).sum()  # called_here
    loss.backward()  # accumulated_here
    optimizer.step()  # needed_here


for _ in range(3):
    train_step(torch.randn(4, 3))
dist.destroy_process_group()
