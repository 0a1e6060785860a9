import torch
from torch.utils.checkpoint import checkpoint
def block(x):
    h = x * 1
    y = h.square()  # role: saved_here
    h.add_(1)  # role: modified_here
    return y * h
x = torch.ones(3, requires_grad=True)
y = checkpoint(block, x, use_reentrant=False)  # role: called_here
y.sum().backward()  # role: needed_here
reference = torch.full((3,), 5.0)
assert not torch.equal(x.grad, reference)  # role: observed_here
print("silent", x.grad.tolist(), "instead of", reference.tolist())
