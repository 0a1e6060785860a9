import torch
import torch.distributed as dist

dist.init_process_group("gloo")

torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for _ in range(25):
    optimizer.zero_grad()
    with model.no_sync():
        model(torch.randn(4, 3)).sum().backward()
    model(torch.randn(4, 3)).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    with torch.no_grad():
        model.module(torch.randn(4, 3))
dist.destroy_process_group()
