import torch
from torch.utils.checkpoint import checkpoint
class Square(torch.nn.Module):
    def forward(self, x):
        return x * x  # role: saved_here
def halve(module, args, output):
    args[0].mul_(0.5)  # role: modified_here
square = Square()
square.register_forward_hook(halve)
x = torch.ones(3, requires_grad=True)
y = checkpoint(lambda x: square(x * 1).sin(), x, use_reentrant=False)  # role: called_here
y.sum().backward()  # role: needed_here
reference = 2 * torch.cos(torch.ones(3))
assert not torch.equal(x.grad, reference)  # role: observed_here
print("silent", x.grad.tolist(), "instead of", reference.tolist())
