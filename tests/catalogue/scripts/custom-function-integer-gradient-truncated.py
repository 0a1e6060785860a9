import torch

class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 0.5

    @staticmethod
    def backward(ctx, g):
        return (g * 0.5).long()  # role: returned_here

w = torch.ones(3, requires_grad=True)
Half.apply(w).sum().backward()  # role: needed_here
assert w.grad.tolist() == [0.0] * 3  # role: observed_here
print("silent", w.grad.tolist(), "instead of", [0.5] * 3)
