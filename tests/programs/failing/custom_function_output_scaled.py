"""expect: saved-tensor-modified-inplace

A hand-written activation saves what it returns, and its caller scales that in place.
"""

import torch
from torch import nn


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = torch.log1p(torch.exp(x))
        ctx.save_for_backward(result)  # role: saved_here
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * (1 - torch.exp(-result))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = 0.5

    def forward(self, x):
        y = Softplus.apply(self.linear(x))
        y *= self.scale  # role: modified_here
        return y


torch.manual_seed(8)
stack = nn.Sequential(*[Layer(4) for _ in range(3)], nn.Linear(4, 1))
prediction = stack(torch.randn(6, 4))
loss = (prediction - 1).abs().mean()
loss.backward()  # role: needed_here
print([round(p.grad.norm().item(), 3) for p in stack.parameters()])
