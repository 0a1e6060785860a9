"""Runs functions of PyTorch inside each other nearly as deep as Python's recursion limit allows, and at the end of a
deep stack."""
import sys

import torch
from torch.utils.checkpoint import checkpoint

x = torch.ones(2, requires_grad=True)


class Module(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner


class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        return Inner.apply(x, depth - 1) if depth else x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def unpacked_inside_each_other(depth):
    def unpack(tensor):
        if depth:
            unpacked_inside_each_other(depth - 1)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.exp()
    y.grad_fn._saved_result


def checkpoints(y, depth):
    y = y.tanh()
    return checkpoint(checkpoints, y, depth - 1, use_reentrant=False) if depth else y


def hooked():
    y = x * 2
    y.register_hook(lambda gradient: gradient * 2)
    y.sum().backward()


def below(frames, function):
    return below(frames - 1, function) if frames else function()


module = None
for _ in range(480):
    module = Module(module)
module.train(False)
print(module.inner.inner.training)
Inner.apply(x, 300).sum().backward()
unpacked_inside_each_other(450)
checkpoints(x, 200).sum().backward()
below(950, lambda: checkpoint(torch.tanh, x, use_reentrant=False).sum().backward())
below(970, lambda: Twice.apply(x).sum().backward())
below(970, hooked)
below(970, lambda: x * 2)
print(x.grad.sum().item() > 0, sys.getrecursionlimit())
sys.setrecursionlimit(1500)
below(1400, hooked)
print(sys.getrecursionlimit())
