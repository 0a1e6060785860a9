"""expect: saved-tensor-modified-inplace

Micro-batches are staged in one buffer, which a checkpoint reads again in the backward pass.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)  # role: saved_here
        return self.head(x)


def staged(micro_batches, buffer):
    """Copy each micro-batch into the one buffer that the model reads."""
    for batch in micro_batches:
        buffer.copy_(batch)  # role: modified_here
        yield buffer


torch.manual_seed(9)
model = Stack(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
buffer = torch.empty(3, 4)
total = torch.zeros(())
for x in staged(torch.randn(4, 3, 4), buffer):
    total = total + model(x).pow(2).mean()
optimizer.zero_grad()
total.backward()  # role: needed_here
optimizer.step()
