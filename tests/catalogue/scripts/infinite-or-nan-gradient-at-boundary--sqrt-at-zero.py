import torch
x = torch.zeros(1, requires_grad=True)  # role: value_made_here
y = x.sqrt()  # role: graph_built_here
y.backward()  # role: needed_here
assert y.item() == 0.0 and x.grad.isinf()  # role: observed_here
print("silent", x.grad.tolist())
