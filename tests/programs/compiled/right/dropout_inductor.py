"""Compiled dropout draws other random numbers: the gradients differ, and none is wrong."""

import torch
from torch import nn

torch.manual_seed(6)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1))
fast = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, target = torch.randn(16, 8), torch.randn(16, 1)
for _ in range(2):
    optimizer.zero_grad()
    nn.functional.mse_loss(fast(data), target).backward()
    optimizer.step()
