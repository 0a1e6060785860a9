"""200 backward passes inside each other, on a stack that is half used before."""
import sys

import torch
from torch.autograd import Function
class DeepReentrant(Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.x = ctx.x - 1
        return ctx.x.detach()
    @staticmethod
    def backward(ctx, x):
        if ctx.x < 0:
            return x
        with torch.enable_grad():
            DeepReentrant.apply(ctx.x).sum().backward()
        return x


def go(depth):
    if depth:
        return go(depth - 1)
    DeepReentrant.apply(torch.tensor(200.0, requires_grad=True)).sum().backward()


go(450)
print("ok", sys.getrecursionlimit())
