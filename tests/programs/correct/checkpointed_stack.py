"""Checkpointed blocks, with dropout and a custom Function between them."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s + x * s * (1 - s))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        return x + self.dropout(Swish.apply(self.linear(x)))


torch.manual_seed(21)
blocks = nn.ModuleList([Block(4) for _ in range(3)])
optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)
for x in torch.randn(2, 3, 4):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    loss = x.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
