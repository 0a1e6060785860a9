import torch
w = torch.tensor(3.0, requires_grad=True)
x = torch.tensor(2.0)
loss = w * x  # role: graph_cut_here
x.requires_grad_()
loss.backward()  # role: needed_here
assert x.grad is None  # role: observed_here
print("silent", x.grad, "instead of", 3.0)
