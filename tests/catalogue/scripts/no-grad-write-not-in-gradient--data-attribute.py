import torch
w = torch.ones(3, requires_grad=True)
h = w + 0  # role: graph_built_here
h.data *= 10  # role: modified_here
h.sum().backward()  # role: needed_here
assert h.tolist() == [10.0] * 3 and w.grad.tolist() == [1.0] * 3  # role: observed_here
print("silent", w.grad.tolist(), "instead of", [10.0] * 3)
