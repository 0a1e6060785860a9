import torch
A = torch.eye(2, requires_grad=True)  # role: value_made_here
values, vectors = torch.linalg.eigh(A)  # role: graph_built_here
vectors.sum().backward()  # role: needed_here
assert A.grad.isnan().all()  # role: observed_here
print("silent", A.grad.tolist())
