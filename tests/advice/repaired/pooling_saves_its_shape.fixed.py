"""expect: save-for-backward-non-tensor

A custom pooling saves its input's shape with save_for_backward.
"""

import torch
from torch import nn


class GlobalMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        flat = x.flatten(1)
        values, index = flat.max(1)
        ctx.save_for_backward(index)
        ctx.shape = x.shape  # role: rejected_here
        return values

    @staticmethod
    def backward(ctx, grad):
        (index,), shape = ctx.saved_tensors, ctx.shape
        out = grad.new_zeros(shape[0], shape[1:].numel())
        return out.scatter_(1, index[:, None], grad[:, None]).view(shape)


class Pool(nn.Module):
    def forward(self, x):
        return GlobalMax.apply(x)  # role: called_here


torch.manual_seed(9)
model = nn.Sequential(nn.Conv2d(1, 2, 3), Pool())
loss = model(torch.randn(2, 1, 6, 6)).sum()
loss.backward()
