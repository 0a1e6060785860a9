import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
best = {name: tensor + 1 for name, tensor in net.state_dict().items()}
model = torch.nn.parallel.DistributedDataParallel(net)  # wrapped_here
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for step in range(3):
    if step == 1 and dist.get_rank() == 0:
        net.load_state_dict(best)  # modified_here
    optimizer.zero_grad()
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()  # needed_here
dist.destroy_process_group()
