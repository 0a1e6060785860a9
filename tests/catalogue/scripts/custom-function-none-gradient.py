import torch

class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, g):
        return g, None  # role: returned_here

x, b = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)
Affine.apply(x, b).sum().backward()  # role: needed_here
assert b.grad is None  # role: observed_here
print("silent", b.grad, "instead of", [1.0] * 3)
