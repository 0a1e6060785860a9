"""Layers that learn their sizes from the first batch, then a step."""

import torch
m = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(1))
o = m(torch.ones(2, 3)).sum()
o.backward()
opt = torch.optim.SGD(m.parameters(), lr=0.1)
opt.step()
print([p.grad.sum().item() for p in m.parameters()][3])
c = torch.nn.Sequential(torch.nn.LazyConv2d(4, 3), torch.nn.LazyBatchNorm2d())
c(torch.ones(2, 3, 5, 5)).sum().backward()
