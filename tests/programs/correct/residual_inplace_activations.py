"""A residual net with every legal in-place operation: ReLU after a norm, and += on a fresh result."""

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.norm(self.first(x)))
        out = self.second(out)
        out += x
        return self.relu(out)


torch.manual_seed(12)
net = nn.Sequential(nn.Conv2d(1, 4, 3), Residual(4), Residual(4), nn.Flatten(), nn.Dropout(0.1))
head = nn.Linear(64, 3)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
for _ in range(2):
    loss = F.cross_entropy(head(net(torch.randn(2, 1, 6, 6))), torch.tensor([0, 2]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.eval()
with torch.inference_mode():
    print(head(net(torch.randn(1, 1, 6, 6))).shape)
