"""A hook that only looks is not called, and no gradient depends on it."""

import torch
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
fast = torch.compile(model, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, norms = torch.randn(16, 4), []
for epoch in range(3):
    if epoch == 1:
        model[0].register_forward_hook(lambda module, inputs, output: norms.append(output.norm().item()))
    optimizer.zero_grad()
    fast(data).square().mean().backward()
    optimizer.step()
