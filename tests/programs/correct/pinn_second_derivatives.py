"""A physics-informed net: second derivatives of the output in the loss."""

import torch
from torch import nn


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


torch.manual_seed(11)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
points = torch.linspace(0, 1, 10)[:, None]
edges = torch.tensor([[0.0], [1.0]])
for _ in range(3):
    x = points.clone().requires_grad_(True)
    u = net(x)
    second = derivative(derivative(u, x), x)
    residual = (second + u).pow(2).mean()
    boundary = net(edges).pow(2).mean()
    optimizer.zero_grad()
    (residual + boundary).backward()
    optimizer.step()
print("done")
