import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * 2)
p = torch.export.export(Net(), (torch.ones(2, 2),))
print(p.graph)
print(p.module()(torch.ones(2, 2)))
