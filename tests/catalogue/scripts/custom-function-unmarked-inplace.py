import torch

class Bump(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)  # role: modified_here
        return x.clone()

    backward = staticmethod(lambda ctx, g: 3 * g)

w = torch.ones(3, requires_grad=True)
h = w * 1
y = Bump.apply(h)  # role: called_here
h.sum().backward()  # role: needed_here
assert h.tolist() == [3.0] * 3 and w.grad.tolist() == [1.0] * 3  # role: observed_here
print("silent", w.grad.tolist())
