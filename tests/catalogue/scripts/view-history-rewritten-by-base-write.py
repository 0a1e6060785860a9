import torch
x = torch.ones(2, requires_grad=True)
h = x * 1
v = h[0]  # role: view_made_here
before = v.grad_fn.name()
h.mul_(3)  # role: modified_here
after = v.grad_fn.name()
assert before != after and v.item() == 3.0  # role: observed_here
print("silent", before, "to", after)
