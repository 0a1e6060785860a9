import torch
import torch.distributed as dist

dist.init_process_group("gloo")


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        if self.training:
            self.scale = 0.9 * self.scale + 0.1 * x.detach().std(dim=0)
        return self.layer(x * self.scale)


torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(3, 3), Scaled()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(2):
    optimizer.zero_grad()
    with model.no_sync():
        model(torch.randn(4, 3) + 1).square().mean().backward()
    model(torch.randn(4, 3)).square().mean().neg().backward()
    optimizer.step()
dist.destroy_process_group()
