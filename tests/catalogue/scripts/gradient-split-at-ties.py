import torch
x = torch.ones(2, requires_grad=True)
x.max().backward()  # role: graph_built_here, needed_here
spread, x.grad = x.grad, None
x.max(dim=0).values.backward()
assert spread.tolist() == [0.5, 0.5] and x.grad.tolist() == [1.0, 0.0]  # role: observed_here
print("silent", spread.tolist(), "and max(dim) gives", x.grad.tolist())
