# expect: custom-function-missing-backward
"""Two functions of one name in two factories; one of them has no backward."""
import torch


def rounding():
    class Step(torch.autograd.Function):  # role: function_defined_here
        @staticmethod
        def forward(ctx, value):
            return value.round()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    return Step


def clamping():
    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value.clamp(0, 1)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    return Step


weight = torch.rand(3, requires_grad=True)
steps = [rounding(), clamping()]
value = weight * 2
rounded = steps[0].apply(value)  # role: called_here
kept = steps[1].apply(rounded)
kept.sum().backward()  # role: needed_here
