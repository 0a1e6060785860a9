import torch
x = torch.ones(3, requires_grad=True)
z = torch.ones(3, requires_grad=True)

def scale(g):
    g.mul_(10)  # role: modified_here

x.register_hook(scale)  # role: hook_registered_here
(x + z).backward(torch.ones(3))  # role: needed_here
assert z.grad.tolist() == [10.0] * 3  # role: observed_here
print("silent", z.grad.tolist(), "instead of", [1.0] * 3)
