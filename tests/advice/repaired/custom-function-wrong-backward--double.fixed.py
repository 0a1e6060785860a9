import torch
class Penalty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs().pow(1.5).sum()
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 1.5 * x.abs().sqrt() * x.sign() * g  # role: returned_here
w = torch.tensor([0.5, -0.7, 1.0], dtype=torch.float64, requires_grad=True)
loss = 0.1 * Penalty.apply(w) + (w * w).sum()
loss.backward()  # role: needed_here
print(w.grad)
