import torch
x = torch.tensor([0.0, 4.0], requires_grad=True)  # role: value_made_here
y = torch.where(x > 0, x.sqrt(), torch.zeros(2))  # role: graph_built_here
y.sum().backward()  # role: needed_here
assert y.tolist() == [0.0, 2.0] and x.grad[0].isnan()  # role: observed_here
print("silent", x.grad.tolist(), "instead of [0.0, 0.25]")
