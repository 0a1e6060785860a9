# expect: invalid-gradient-shape
"""One custom function calls another; the inner one forgets that it repeated its input."""
import torch


class Tile(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, times):
        ctx.times = times
        return value.repeat(times, 1)

    @staticmethod
    def backward(ctx, gradient):
        if ctx.times == 1:
            return gradient, None
        return gradient.view(ctx.times, -1, gradient.shape[-1]).sum(0), None  # role: returned_here


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, factor):
        ctx.factor = factor
        return value * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


def augment(value):
    tiled = Tile.apply(value, 3)  # role: called_here
    return Scaled.apply(tiled, 0.5)


table = torch.ones(2, 4, requires_grad=True)
once = Scaled.apply(Tile.apply(table, 1), 2.0)
loss = once.sum() + augment(table).sum()
loss.backward()  # role: needed_here
