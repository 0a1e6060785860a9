"""expect: gradcheck-jacobian-mismatch

gradcheck of a hand-made layer norm through a closure.
"""

import torch
from torch.autograd import gradcheck


class Centre(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad):
        return grad - grad.mean(-1, keepdim=True)  # role: returned_here


def layer(gain):
    def run(x):
        return gain * Centre.apply(x)

    return run


def verify(functions, sample):
    for function in functions:
        assert gradcheck(function, (sample,), eps=1e-6, atol=1e-4)  # role: called_here


torch.manual_seed(11)
x = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
gain = torch.rand(4, dtype=torch.double)
verify([torch.tanh, layer(gain)], x)
