"""A trunk that is unfrozen after a while: its parameters come to the optimizer by `add_param_group`."""

import torch
from torch import nn

torch.manual_seed(12)
trunk = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
head = nn.Linear(8, 2)
trunk.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
inputs, labels = torch.randn(12, 5), torch.randint(0, 2, (12,))
for epoch in range(4):
    if epoch == 2:
        trunk.requires_grad_(True)
        optimizer.add_param_group({"params": trunk.parameters(), "lr": 1e-3})
    loss = nn.functional.cross_entropy(head(trunk(inputs)), labels)
    optimizer.zero_grad()
    loss.backward()
    if epoch == 0:
        head.bias.grad = None
    optimizer.step()
    print(epoch, round(loss.item(), 3))
