"""A frozen trunk with a new head; statistics of the trunk stay as they are."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(19)
trunk = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten())
for parameter in trunk.parameters():
    parameter.requires_grad = False
trunk.eval()
head = nn.Linear(64, 3)
model = nn.Sequential(trunk, head)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for _ in range(3):
    x, y = torch.randn(4, 1, 6, 6), torch.tensor([0, 1, 2, 0])
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean()
print(0 <= accuracy.item() <= 1, trunk[0].weight.grad is None)
