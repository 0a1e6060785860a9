import torch
from torch.utils.checkpoint import checkpoint
scale = 2.0
x = torch.ones(3, requires_grad=True)
y = checkpoint(lambda t: (t * scale) ** 2, x, use_reentrant=False)  # role: called_here
scale = 5.0  # role: state_changed_here
y.sum().backward()  # role: needed_here
assert x.grad.tolist() == [20.0] * 3  # role: observed_here
print("silent", x.grad.tolist(), "instead of", [8.0] * 3)
