import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return ctx.saved_tensors[0] * g  # role: returned_here

w = torch.full((3,), 3.0, requires_grad=True)
Square.apply(w).sum().backward()  # role: needed_here
assert w.grad.tolist() == [3.0] * 3  # role: observed_here
print("silent", w.grad.tolist(), "instead of", [6.0] * 3)
