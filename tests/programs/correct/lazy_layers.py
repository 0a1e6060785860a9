"""Layers that learn their sizes from the first batch, then a few steps."""

import torch

torch.manual_seed(0)
dense = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(1))
inputs, targets = torch.randn(8, 3), torch.randn(8, 1)
dense(inputs)

optimizer = torch.optim.SGD(dense.parameters(), lr=0.1)
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(dense(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[-1] < losses[0])

pictures = torch.nn.Sequential(torch.nn.LazyConv2d(4, 3), torch.nn.LazyBatchNorm2d())
pictures(torch.ones(2, 3, 5, 5)).sum().backward()
print([tuple(parameter.grad.shape) for parameter in pictures.parameters()])
