"""Goes through every door by which torch and Python call the second run of `--reference`; it prints the same there."""

import threading

import torch
from torch.utils.checkpoint import checkpoint


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.x = x
        ctx.factor = factor
        return x * x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 * ctx.x * ctx.factor, None


def refuse(gradient):
    raise OSError("the program's own")


def values():
    x = torch.arange(1.0, 4.0, requires_grad=True)
    x.register_hook(lambda gradient: gradient * 3)
    x.exp().sum().backward()
    print(x.grad)
    print(torch.autograd.grad(Scaled.apply(x, 2.0).sum(), x))
    Scaled.apply(x, 3.0).sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (tensor, 1), lambda packed: packed[0]):
        y = x.sin()
    y.sum().backward()
    checkpoint(lambda value: value.sin().cos(), x, use_reentrant=False).sum().backward()
    print(x.grad)
    print(torch.func.grad(lambda value: value.sin().sum())(x.detach()))
    x.register_hook(refuse)
    try:
        x.sum().backward()
    except OSError as error:
        print(repr(error), error.__context__)


values()
thread = threading.Thread(target=values)
thread.start()
thread.join()
