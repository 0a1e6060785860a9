import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x  # role: saved_here
        return x * x

    backward = staticmethod(lambda ctx, g: 2 * ctx.x * g)

w = torch.ones(3, requires_grad=True)
h = w * 1
loss = Square.apply(h).sum()
h.mul_(10)  # role: modified_here
loss.backward()  # role: needed_here
assert w.grad.tolist() == [20.0] * 3  # role: observed_here
print("silent", w.grad.tolist(), "instead of", [2.0] * 3)
