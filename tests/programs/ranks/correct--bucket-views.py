import torch
import torch.distributed as dist

dist.init_process_group("gloo")

torch.manual_seed(dist.get_rank())
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).to(torch.bfloat16)
model = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True, static_graph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for step in range(22):
    optimizer.zero_grad(set_to_none=False)
    model(torch.randn(4, 3, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    schedule.step()
model.eval()
with torch.inference_mode():
    model(torch.randn(4, 3, dtype=torch.bfloat16))
dist.destroy_process_group()
