import torch
x = torch.zeros(2, requires_grad=True)  # role: value_made_here
y = (x ** 2).sum().sqrt()  # role: graph_built_here
y.backward()  # role: needed_here
reference, = torch.autograd.grad(torch.linalg.vector_norm(x), x)
assert x.grad.isnan().all() and reference.tolist() == [0.0, 0.0]  # role: observed_here
print("silent", x.grad.tolist(), "instead of", reference.tolist())
