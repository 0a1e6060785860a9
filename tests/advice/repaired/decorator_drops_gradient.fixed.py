# expect: custom-function-wrong-gradient-count
"""A decorator on backward drops a gradient on its way out."""
import functools
import torch
from torch.autograd.function import once_differentiable


def first_only(function):
    @functools.wraps(function)
    def inner(ctx, *gradients):
        return function(ctx, *gradients)  # role: returned_here

    return inner


class Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right):  # role: function_defined_here
        return left + 2 * right

    @staticmethod
    @once_differentiable
    @first_only
    def backward(ctx, gradient):
        return gradient, 2 * gradient


left, right = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
mixed = Mix.apply(left, right)  # role: called_here
mixed.sum().backward()  # role: needed_here
