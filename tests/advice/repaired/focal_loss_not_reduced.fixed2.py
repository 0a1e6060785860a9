"""expect: non-scalar-implicit-grad

A focal loss forgets to average, and an accumulation loop divides it before it is differentiated.
"""

import torch
from torch import nn
from torch.nn import functional as F


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, labels):
        entropy = F.cross_entropy(logits, labels, reduction="none")  # role: value_made_here
        confidence = torch.exp(-entropy)  # role: value_made_here
        return (1 - confidence) ** self.gamma * entropy  # role: value_made_here


torch.manual_seed(44)
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = FocalLoss()
accumulate = 2
optimizer.zero_grad()
for step in range(4):
    x, labels = torch.randn(5, 4), torch.randint(0, 3, (5,))
    loss = criterion(model(x), labels) / accumulate  # role: value_made_here
    loss.sum().backward()  # role: needed_here
    if step % accumulate == 1:
        optimizer.step()
        optimizer.zero_grad()
