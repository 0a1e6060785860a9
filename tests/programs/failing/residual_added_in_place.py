"""expect: saved-tensor-modified-inplace

A residual net that adds the branch to its input in place.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.first(x))  # role: saved_here
        x += self.second(h)  # role: modified_here
        return x


def make_net(depth):
    stem = nn.Conv2d(1, 4, 3, padding=1)
    return nn.Sequential(stem, *(Residual(4) for _ in range(depth)), nn.Flatten(), nn.Linear(4 * 36, 3))


torch.manual_seed(4)
net = make_net(3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
images, labels = torch.randn(2, 1, 6, 6), torch.tensor([0, 2])
logits = net(images)
loss = F.cross_entropy(logits, labels)
optimizer.zero_grad()
loss.backward()  # role: needed_here
optimizer.step()
