"""Gradients of four micro-batches are meant to add up, and the first three are cleared."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
x, y = torch.randn(64, 4), torch.randn(64, 1)
for epoch in range(2):
    for number, rows in enumerate(torch.randperm(64).split(8)):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows]) / 4
        loss.backward()  # role: needed_here
        if (number + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
print("done")
