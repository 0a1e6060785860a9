"""Momentum contrast: a queue is read through a clone and written after the logits are made."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class Queue(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.register_buffer("keys", F.normalize(torch.randn(width, size), dim=0))
        self.register_buffer("position", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def push(self, keys):
        start, count = int(self.position), keys.shape[0]
        self.keys[:, start : start + count] = keys.t()
        self.position.fill_((start + count) % self.keys.shape[1])


torch.manual_seed(14)
encoder = nn.Linear(5, 4)
momentum_encoder = copy.deepcopy(encoder).requires_grad_(False)
queue = Queue(4, 8)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for x in torch.randn(3, 4, 5):
    q = F.normalize(encoder(x), dim=1)
    with torch.no_grad():
        for slow, fast in zip(momentum_encoder.parameters(), encoder.parameters()):
            slow.data.mul_(0.9).add_(fast.data, alpha=0.1)
        k = F.normalize(momentum_encoder(x + 0.1), dim=1)
    positive = (q * k).sum(1, keepdim=True)
    negative = q @ queue.keys.clone().detach()
    logits = torch.cat([positive, negative], dim=1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(4, dtype=torch.long))
    queue.push(k)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
